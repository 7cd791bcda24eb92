"""The base of every system test: unittest, and instances that go away."""
import os
import signal
import unittest

from instance import AS_ROOT, HANG, Failed, Instance, reports

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
        signal.signal(signal.SIGTERM, self.told_to_end)
        signal.alarm(TEST_LIMIT)
        self.addCleanup(signal.alarm, 0)
        reports.clear()
        self.addCleanup(self.no_reports)

    def give_up(self, *_):
        """Raised where the test hangs: its place is shown, its instances go."""
        raise Failed(f"no end within {TEST_LIMIT} s")

    def told_to_end(self, *_):
        """The check ends (tests/check.sh): the test fails, so that its instances go."""
        raise Failed("ended by a signal")

    def instance(self, **options):
        made = Instance(**options)
        self.addCleanup(made.destroy)
        self.addCleanup(self.show_log, made)
        return made

    def no_reports(self):
        """Whatever else has passed: a report of a daemon or a command fails the test."""
        if reports:
            raise Failed("a sanitizer has reported: " + "\n".join(reports))

    def show_log(self, instance):
        """After a failure: the end of what the instance said."""
        outcome = self._outcome.result
        if outcome.failures or outcome.errors:
            log = instance.log()
            print(f"---- log of {instance.name}", f"{log[-6000:]}----", sep="\n")

    def running(self, **options):
        return self.instance(**options).start()
