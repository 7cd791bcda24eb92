#!/usr/bin/python3
"""make check-peers: mail of a whole instance to servers that were not written
here: Postfix, Exim, OpenSMTPD, and Dovecot over LMTP, of Debian's packages, in
cells (cell.py). What arrives is compared, octet by octet, with what the queue
has: only the fields that the server puts in front may come before it.

    check.py [--exact] [PATTERN…]

What cannot run here says why, and is counted.
"""
import os
import pathlib
import re
import shlex
import signal
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
# The package of this name of the host, if any, is not meant.
sys.path.insert(0, str(HERE))

import failover  # noqa: E402
import plain  # noqa: E402
import proof  # noqa: E402
import secure  # noqa: E402
import slow_line  # noqa: E402
from instance import BIN, Failed  # noqa: E402


# ---- the command ----

class Result(unittest.TestResult):
    """A line for each test."""

    def __init__(self):
        super().__init__()
        self.ok, self.began = 0, time.monotonic()
        self.bad = set()
        self.reasons = {}

    def say(self, test, word, words=""):
        now = time.monotonic()
        print(f"peers: {test.id()}: {word}{words} ({now - self.began:.1f} s)", flush=True)
        self.began = now
        if word.startswith("FAILED"):
            self.reasons.setdefault(getattr(test, "test_case", test).id(), " ".join(words.split()) or "no words")

    def name_failed(self):
        """Each failed test, with the command that runs it alone."""
        for name, words in self.reasons.items():
            setup = re.fullmatch(r"setUpClass \((.+)\)", name)
            again = shlex.join(["env", f"QSCHED_BIN={BIN}", sys.executable, "-B", "tests/peers/check.py",
                                "--exact", f"{setup.group(1)}.*" if setup else name])
            print(f"FAILED\t{name}\t{again}\t{words}", flush=True)

    def is_bad(self, test):
        return test.id() in self.bad or any(case.id() == test.id() for case, _ in self.failures + self.errors)

    def addSuccess(self, test):
        self.ok += 1
        self.say(test, "ok")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(self.failures[-1][1])
        self.say(test, "FAILED: ", str(err[1]).splitlines()[0][:300])

    def addError(self, test, err):
        super().addError(test, err)
        print(self.errors[-1][1])
        self.say(test, "FAILED: ", str(err[1]).splitlines()[0][:300])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad.add(test.id())
            self.say(subtest, "FAILED: ", str(err[1])[:2000])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIP {test.id()}: {reason}", flush=True)


def main():
    os.umask(0o022)
    loader = unittest.TestLoader()
    exact = sys.argv[1:2] == ["--exact"]
    loader.testNamePatterns = [word if exact else f"*{word}*" for word in sys.argv[1 + exact:]] or None
    result = Result()

    def end(*_):
        """The test that runs fails, so that its servers and instances go."""
        result.stop()
        raise Failed("ended by a signal")
    signal.signal(signal.SIGTERM, end)
    for module in plain, secure, proof, failover, slow_line:
        loader.loadTestsFromModule(module).run(result)
    failed = len(result.reasons)
    result.name_failed()
    print(f"{result.ok} passed, {failed} failed")  # what was skipped has a line each
    return int(failed > 0 or result.ok + len(result.skipped) == 0)


if __name__ == "__main__":
    sys.exit(main())
