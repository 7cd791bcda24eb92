"""A spool that was restored from a backup, or copied to another file system."""
import os
import pathlib
import shutil
import subprocess
import time

from case import SystemTest
from instance import BIN, wait

LATER = b"Subject: later\n\nlater\n"


class Restored(SystemTest):
    def waiting(self, count):
        """A stopped instance with messages in deferred/, on hold and in incoming/."""
        i = self.instance(queues=1, routing="slow.example smtp:[127.0.0.1]:9\n* local\n",
                          conf={"minimal_backoff_time": "1d", "maximal_backoff_time": "1d"})
        i.start()
        for n in range(count):
            i.inject(LATER, f"u{n}@slow.example")
        wait(lambda: len(i.files("deferred")) == count, what="deferred mail")
        i.stop()
        return i

    def copy(self, i):
        """As cp -a does: other inodes, the old times; the numbers of the old ones are taken."""
        kept = i.base.with_name("old")
        i.base.rename(kept)
        subprocess.run(["cp", "-a", kept, i.base], check=True)

    def setqload(self, i):
        return subprocess.run([BIN / "setqload", "--list", "-c", i.conf_file], env=i.environment(),
                              capture_output=True, text=True, check=False).stdout

    def repaired(self, i, count):
        """mutation: check_disk() of health.c passes by a faulty queue."""
        refusal = 'run "qctl check --repair queue=1"'
        i.start()
        wait(lambda: i.log_has(f"ALERT: queue 1 is disabled: {refusal}"), what="the ALERT")
        self.assertIn(f"for a fault: {refusal}", self.setqload(i))
        self.assertEqual(len(i.files("deferred")), count)
        self.assertEqual(i.files("corrupt"), [])
        done = subprocess.run([BIN / "qctl", "-c", i.conf_file, "check", "--repair", "queue=1"], env=i.environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ended = time.monotonic()
        i.wait_open(1)
        self.assertLess(time.monotonic() - ended, 30, "not by the health of each minute")
        self.assertEqual(len(i.files("deferred")), count)
        self.assertEqual(len(i.files("defer")), count, "their reasons")
        self.assertEqual(i.files("corrupt"), [])
        i.stop()

    def test_D45_a_copied_spool_is_not_taken_for_damage(self):
        i = self.waiting(5)
        self.copy(i)
        self.repaired(i, 5)

    def test_D45_a_copied_spool_with_one_message(self):
        i = self.waiting(1)
        for path in i.files("deferred", "defer"):
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10 * 10**9))
        self.copy(i)
        self.repaired(i, 1)

    def test_D45_a_repair_that_was_killed_is_repeated(self):
        """It has given two files of three their last names. Nothing names the third."""
        i = self.waiting(3)
        for place in "deferred", "defer":
            for path in i.files(place):
                if path.name == i.files("deferred")[0].name:
                    path.rename(path.with_name(f"mend-{path.name}"))
        self.repaired(i, 3)

    def test_D45_a_copied_spool_with_mail_in_every_directory(self):
        i = self.instance(queues=1, conf={"minimal_backoff_time": "1d", "maximal_backoff_time": "1d",
                                          "double_bounce_recipient": ""},
                          routing='slow.example smtp:[127.0.0.1]:9\nbad.example error:"5.1.1 no"\n* local\n')
        i.start()
        for n in range(3):
            i.inject(LATER, f"u{n}@slow.example", f"u{n}@bad.example", sender="")
        wait(lambda: len(i.files("deferred")) == 3 and len(i.files("bounce")) == 3, what="deferred mail")
        rows = subprocess.run([BIN / "qctl", "-c", i.conf_file, "list"], env=i.environment(), capture_output=True,
                              text=True, check=True).stdout.splitlines()
        subprocess.run([BIN / "qctl", "-c", i.conf_file, "hold", rows[1].split()[0]], env=i.environment(),
                       capture_output=True, check=True)
        i.stop()
        one = i.files("deferred")[0]
        one.rename(i.queue(1) / "active" / one.parent.name / one.name)
        i.inject(LATER, "u3@slow.example", sender="")
        places = "incoming", "active", "deferred", "hold", "bounce"
        counts = [1, 1, 1, 1, 3]
        self.assertEqual([len(i.files(place)) for place in places], counts)
        notes = sorted(i.texts("bounce"))
        self.copy(i)
        i.start()
        wait(lambda: i.log_has('ALERT: queue 1 is disabled: run "qctl check --repair queue=1"'), what="the ALERT")
        i.stop()
        self.assertEqual([len(i.files(place)) for place in places], counts, "nothing was touched")
        subprocess.run([BIN / "qctl", "-c", i.conf_file, "check", "--repair", "queue=1"], env=i.environment(),
                       capture_output=True, check=True)
        self.assertEqual([len(i.files(place)) for place in places], counts, "after the repair")
        i.start()
        i.wait_open(1)
        wait(lambda: len(i.files("deferred")) == 3, what="all that is not held is deferred")
        i.stop()
        self.assertEqual([len(i.files(place)) for place in places], [0, 0, 3, 1, 3])
        self.assertEqual(i.files("corrupt"), [])
        self.assertEqual(sorted(i.texts("bounce")), notes)
        self.assertEqual({p.name for p in i.files("bounce")} - {p.name for p in i.files("deferred", "hold")}, set())

    def test_D45_a_wrong_mode_is_damage_and_no_copy(self):
        i = self.waiting(3)
        for path in i.files("deferred")[:2]:
            path.chmod(0o666)
        i.start()
        i.wait_open(1)
        i.flush()
        wait(lambda: len(i.files("corrupt")) == 2, what="two in corrupt/")
        wait(lambda: len(i.files("deferred")) == 1, what="the other is deferred again")
        i.stop()

    def test_D45_one_wrong_name_among_others_is_damage_as_ever(self):
        i = self.waiting(3)
        one = i.files("deferred")[0]
        copy = pathlib.Path(shutil.copy2(one, one.with_name("tmp.copy")))
        if os.geteuid() == 0:
            shutil.chown(copy, one.stat().st_uid, one.stat().st_gid)
        copy.rename(one)
        i.start()
        i.wait_open(1)
        i.flush()
        wait(lambda: len(i.files("corrupt")) == 1, what="one in corrupt/")
        wait(lambda: len(i.files("deferred")) == 2, what="the others are deferred again")
        i.stop()
