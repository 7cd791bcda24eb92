"""Queues that are not as they should be, and their repair (qctl check)."""
import fcntl
import os
import re
import shutil
import subprocess

from case import needs_root
from instance import BIN, USERS, wait
from test_qctl import HELLO, LATER, Queues


class Check(Queues):
    def stopped(self, count=3, **conf):
        """So many messages in deferred/ of one queue, sN@ to rN@later.example,
        each with a reason that names its recipient."""
        i = self.instance(queues=1, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h", **conf})
        i.start()
        for n in range(count):
            i.inject(HELLO, f"r{n}@later.example", sender=f"s{n}@test.example")
        wait(lambda: len(i.files("deferred")) == len(i.files("defer")) == count, what="all deferred")
        i.stop()
        return i

    def check(self, i, *words, status=0):
        """The lines without the number of the queue."""
        return [line.removeprefix("queue 1: ") for line in self.call(i, "check", *words, status=status).stdout.splitlines()]

    def mend(self, i, *want, twice=0):
        """Each is found, nothing changes by that; then each is mended, and nothing is left. `twice` are found at
        two names."""
        before = self.tree(i)
        found = self.check(i, status=65)
        self.assertEqual(self.tree(i), before)
        self.assertEqual(found[-1], f"{len(want) + twice} flaw{'s' * (len(want) + twice != 1)}", found)
        mended = self.check(i, "--repair")
        for text in want:
            self.assertTrue(any(re.search(text, line) for line in mended), f"{text}: {mended}")
        self.assertEqual(mended[-1], f"{len(want)} flaw{'s' * (len(want) != 1)} mended, 0 left", mended)
        self.assertEqual(self.check(i), ["no flaw"])
        return mended

    @staticmethod
    def tree(i):
        return sorted((str(p.relative_to(i.base)), p.lstat().st_ino, p.lstat().st_mode, p.lstat().st_gid)
                      for p in i.base.rglob("*"))

    @staticmethod
    def of(i, n, state="deferred"):
        """The file of message n."""
        return next(p for p in i.files(state) if f"r{n}@later.example".encode() in p.read_bytes())

    @staticmethod
    def reason(path, kind="defer"):
        return path.parents[2] / kind / path.parent.name / path.name

    def all_arrive(self, i, count):
        i.routing_file.write_text("* local\n")
        i.start()
        i.flush()
        for n in range(count):
            i.wait_delivered(f"r{n}", 1)
        i.wait_empty()
        for n in range(count):
            self.assertEqual(len(i.maildir(f"r{n}")), 1)

    def test_nothing_is_wrong(self):
        i = self.stopped()
        self.assertEqual(self.check(i), ["no flaw"])
        self.assertEqual(self.check(i, "--content"), ["no flaw"])
        self.assertEqual(self.check(i, "--repair"), ["no flaw"])
        i.start()
        self.assertEqual(self.check(i), ["no flaw"])
        self.assertEqual(self.check(i, "queue=1"), ["no flaw"])
        self.call(i, "check", "sender=x", status=64)

    def test_A8_a_queue_that_runs_is_not_repaired(self):
        i = self.stopped()
        i.start()
        done = self.call(i, "check", "--repair", status=75)
        self.assertIn("queue 1: runs: nothing of it is repaired", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_backup_on_another_file_system_is_usable(self):
        """The names are the inodes that the files had."""
        i = self.stopped(count=12)
        reasons = {p.name: p.read_text() for p in i.files("defer")}
        copy = i.base.with_name("restored")
        subprocess.run(["cp", "-a", i.base, copy], check=True)
        shutil.rmtree(i.base)
        copy.rename(i.base)
        self.assertEqual(len(self.check(i, status=65)), 13)
        self.assertEqual(self.call(i, "list").stdout.count("(damaged: its name is not its inode)"), 12)
        self.mend(i, *["its name is not its inode .*renamed"] * 12)
        for n in range(12):
            message = self.of(i, n)
            self.assertEqual(message.name, str(message.stat().st_ino))
            self.assertIn(f"\tr{n}@later.example\t", self.reason(message).read_text())
        self.assertEqual(sorted(p.read_text() for p in i.files("defer")), sorted(reasons.values()))
        self.all_arrive(i, 12)

    def test_names_that_others_have(self):
        i = self.stopped(count=3)
        paths = [self.of(i, n) for n in range(3)]
        for kind in (lambda p: p, self.reason):  # in a circle
            aside = [kind(p).with_name(f"tmp.{n}") for n, p in enumerate(paths)]
            for n, p in enumerate(paths):
                kind(p).rename(aside[n])
            for n in range(3):
                aside[n].rename(kind(paths[(n + 1) % 3]))
        self.mend(i, *["its name is not its inode .*renamed"] * 3)
        for n in range(3):
            self.assertEqual(self.of(i, n), paths[n])
            self.assertIn(f"\tr{n}@later.example\t", self.reason(paths[n]).read_text())
        self.all_arrive(i, 3)

    def test_a_repair_that_was_cut_off_goes_on(self):
        i = self.stopped(count=2)
        for n, message in enumerate([self.of(i, 0), self.of(i, 1)]):
            name = f"mend-{message.stat().st_ino}"
            self.reason(message).rename(self.reason(message).with_name(name))
            if n == 0:  # before the message had it
                message.rename(message.with_name("4711") if int(message.name) % 23 == 4711 % 23 else
                               message.parents[1] / str(4711 % 23) / "4711")
            else:
                message.rename(message.with_name(name))
        self.mend(i, "renamed", "renamed")
        for n in range(2):
            self.assertIn(f"\tr{n}@later.example\t", self.reason(self.of(i, n)).read_text())
        self.all_arrive(i, 2)

    def test_a_repair_that_was_cut_off_keeps_all_reasons(self):
        """Some of them have one name already, and the message has another."""
        i = self.stopped(0)
        i.start()
        for n in range(3):
            i.inject(HELLO, f"r{n}@later.example", "b@bad.example", sender=f"s{n}@test.example")
            i.wait_delivered(f"s{n}", 1)  # the report
        wait(lambda: len(i.files("deferred")) == len(i.files("defer")) == 3 and
             not i.files("active", "incoming", "prepared"), what="all deferred")
        i.stop()
        paths = [self.of(i, n) for n in range(3)]
        kept = [(p.read_bytes(), self.reason(p).read_text(), self.reason(p, "bounce").read_text()) for p in paths]
        mend = [p.with_name(f"mend-{p.name}") for p in paths]
        self.reason(paths[0]).rename(self.reason(mend[0]))
        self.reason(paths[0], "bounce").rename(self.reason(mend[0], "bounce"))
        paths[0].rename(paths[0].with_name(str(int(paths[0].name) + 23000)))  # before it has any of both
        self.reason(paths[1], "bounce").rename(self.reason(mend[1], "bounce"))
        for n in (1, 2):  # one of its reasons, or both, have their name again
            paths[n].rename(mend[n])
        self.mend(i, *["its name is not its inode .*renamed"] * 3)
        self.assertEqual(kept, [(p.read_bytes(), self.reason(p).read_text(), self.reason(p, "bounce").read_text())
                                for p in paths])

    def test_D14_damage_goes_to_corrupt(self):
        i = self.stopped(count=2)
        message = self.of(i, 0)
        data = message.read_bytes()
        message.write_bytes(data.replace(b"hello\n", b"jello\n"))
        self.assertEqual(self.check(i), ["no flaw"], "sums are not looked at")
        self.assertIn("damaged (", self.check(i, "--content", status=65)[0])
        message.write_bytes(data[:-5])
        self.mend(i, "damaged .*moved to corrupt/")
        self.assertEqual([p.name for p in i.files("corrupt")], [message.name])
        self.assertEqual(i.files("corrupt")[0].read_bytes(), data[:-5])

    def test_D13_a_file_that_is_being_written_is_left(self):
        i = self.stopped(count=1)
        message = self.of(i, 0)
        message.write_bytes(message.read_bytes()[:-5])
        with open(message, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.assertEqual(self.check(i), ["no flaw"])

    def test_copies_are_put_on_hold(self):
        i = self.stopped(count=2)
        message = self.of(i, 0)
        copy = message.with_name("copy")
        subprocess.run(["cp", "-a", message, copy], check=True)
        inode = copy.stat().st_ino
        copy.rename(message.parents[1] / str(inode % 23) / str(inode))
        self.mend(i, f"a copy of another message .of ({message.name}|{inode}).*on hold")
        self.assertIn([p.name for p in i.files("hold")], ([str(inode)], [message.name]))
        self.assertEqual(len(i.files("deferred")), 2)

    def test_marks_and_reasons_without_each_other(self):
        i = self.stopped(count=2)
        message = self.of(i, 0)
        with open(message, "r+b") as f:
            f.seek(message.read_bytes().rindex(b"R."))
            f.write(b"RF")
        other = self.of(i, 1)
        orphan = self.reason(other).with_name(str(int(other.name) + 23000))
        shutil.copy2(self.reason(other), orphan)
        shutil.chown(orphan, self.reason(other).owner())
        self.mend(i, r"failed without a reason \(1 of them\): they are pending",
                  "reasons of a message that is not there: removed")
        self.assertFalse(orphan.exists())
        self.all_arrive(i, 2)

    def test_two_links_and_files_of_another_kind(self):
        i = self.stopped(count=1)
        message = self.of(i, 0)
        hold = message.parents[2] / "hold"
        os.link(message, hold / message.name)
        os.mkfifo(hold / "4711")
        self.mend(i, "more than one name.*: one name is left", "no file of the queue: moved to corrupt/", twice=1)

    def test_what_no_program_made_is_left(self):
        i = self.stopped(count=1)
        foreign = self.of(i, 0).parents[2] / "hold" / "notes\033[2J"
        foreign.write_bytes(b"x")
        self.assertEqual(self.check(i, "--repair", status=65), [
            "hold/notes?[2J: a name that no program here made: left for you", "1 flaw"])
        self.assertTrue(foreign.exists())

    def test_prepared_follows_its_message(self):
        i = self.stopped(count=3)
        message, other, gone = (self.of(i, n) for n in range(3))
        queue = message.parents[2]
        ids = {row["sender"]: row["queue_id"] for row in self.rows(i)}
        self.reason(gone).unlink()
        gone.rename(queue / "prepared" / f"{ids['s2@test.example']}.0.0")
        self.mend(i, "prepared for a message that is not there: settled")
        self.assertEqual([p.name for p in i.files("incoming")], [gone.name], "never lost")
        self.reason(other).unlink()
        other.rename(queue / "prepared" / f"{ids['s0@test.example']}.0.0")
        copy = message.with_name("tmp.x")
        shutil.copy2(message, copy)
        message.unlink()
        copy.rename(message)
        self.mend(i, "its name is not its inode", "under its earlier name: renamed")
        (row,) = self.rows(i, "sender=s0@test.example")
        self.assertEqual([p.name for p in i.files("prepared")], [f"{row['queue_id']}.0.0"])

    @needs_root
    def test_owners_and_modes(self):
        i = self.stopped(count=2)
        os.chmod(self.of(i, 0), 0o644)
        shutil.chown(self.of(i, 1), group="nogroup")
        shutil.chown(self.reason(self.of(i, 1)), "root")
        self.mend(i, "wrong owner or mode .*mode 0644.: set", "wrong owner or mode .*mode 0660.: set",
                  "reasons with a wrong owner: set")
        bad = i.base / "queue1/deferred/5"
        os.chmod(bad, 0o700)
        self.assertIn("deferred/5: wrong directory", self.check(i, status=65)[0])
        self.all_arrive(i, 2)
        self.assertEqual(self.check(i), ["no flaw"], "the start has made it right")

    @needs_root
    def test_A4_another_name_of_a_file_is_given_to_nobody(self):
        """As the user of the queue may make it where links are not protected."""
        i = self.stopped(count=1)
        secret = i.base / "secret"
        secret.write_text("of root\n")
        reason = self.reason(self.of(i, 0))
        reason.unlink()
        os.link(secret, reason)
        self.assertRegex(self.check(i, "--repair", status=65)[0], "reasons with a wrong owner: not mended")
        self.assertEqual(secret.stat().st_uid, 0)

    @needs_root
    def test_A4_a_repair_is_for_root(self):
        i = self.stopped(count=1)
        message = self.of(i, 0)
        message.rename(message.with_name(str(int(message.name) + 23000)))
        qctl = shutil.copy(BIN / "qctl", i.dir / "qctl")
        for words, status in (([], 65), (["--repair"], 77)):
            done = subprocess.run([qctl, "check", *words], capture_output=True, text=True, check=False,
                                  env=i.environment(), user="nobody", group="nogroup",
                                  extra_groups=[USERS["qmail_group"]])
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(len(self.check(i, status=65)), 3)
