"""The newcomer's tour, as a user whom the system does not know: in a container
the number of the user often has no account."""
import pwd
import subprocess
import sys

from case import SystemTest, cost, needs_root
from instance import ROOT


def without_account():
    """A number that no account has."""
    known = {user.pw_uid for user in pwd.getpwall()}
    return next(uid for uid in range(54321, 60000) if uid not in known)


class Demo(SystemTest):
    @needs_root
    @cost(6)
    def test_demo_of_a_user_without_an_account(self):
        uid = without_account()
        done = subprocess.run([sys.executable, "-B", ROOT / "tests/demo/demo.py", str(uid)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"as uid {uid}, which has no account", done.stdout)
        self.assertRegex(done.stdout, r"debian +(\d+) of \1 messages the same|SKIP delivery over TLS to Debian's Postfix: ")
        self.assertIn("All of it is true", done.stdout)
