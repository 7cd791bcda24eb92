"""The base of every system test: unittest, and instances that go away."""
import os
import re
import signal
import unittest

from instance import AS_ROOT, HANG, Failed, Instance

# Reports of sanitizers: a test with one is not run again (tests/check/parts.sh).
SANITIZER = re.compile(r"(ERROR|WARNING): [A-Za-z]+Sanitizer|: runtime error: ")
TEST_LIMIT = int(4 * HANG)  # of a test that hangs in several places


def cost(seconds):
    """About how long it takes: long ones are started first."""
    def mark(method):
        method.cost = seconds
        return method
    return mark


needs_root = unittest.skipUnless(AS_ROOT, "needs root")
needs_user = unittest.skipIf(AS_ROOT, "is about an ordinary user")


class SystemTest(unittest.TestCase):
    def setUp(self):
        os.umask(0o022)
        signal.signal(signal.SIGALRM, self.give_up)
        signal.alarm(TEST_LIMIT)
        self.addCleanup(signal.alarm, 0)

    def give_up(self, *_):
        """Raised where the test hangs: its place is shown, its instances go."""
        raise Failed(f"no end within {TEST_LIMIT} s")

    def instance(self, **options):
        made = Instance(**options)
        self.addCleanup(made.destroy)
        self.addCleanup(self.show_log, made)
        return made

    def show_log(self, instance):
        """After a failure: the end of what the instance said."""
        outcome = self._outcome.result
        if outcome.failures or outcome.errors:
            log = instance.log()
            reports = [line for line in log[:-6000].splitlines() if SANITIZER.search(line)]
            print(f"---- log of {instance.name}", *reports, f"{log[-6000:]}----", sep="\n")

    def running(self, **options):
        return self.instance(**options).start()
