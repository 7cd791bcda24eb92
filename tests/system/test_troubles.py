"""Troubles of a host, side by side: for each of them the texts of --check, the
log, `setqload --list`, `qtop -b -n 1` and the submitter's error.

    QSCHED_TROUBLES=FILE tests/system/run.py -j 1 --as-root test_troubles

appends the rows to FILE, as a table for a document."""
import contextlib
import os
import re
import shutil
import subprocess

from case import SystemTest, needs_root
from instance import AS_ROOT, BIN, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
OUTSIDER = 4711


class Troubles(SystemTest):
    def trouble(self, what, i, log, user=False):
        """Waits for the line of the log; the texts of all faces, each in one line."""
        if log:
            wait(lambda: i.log_has(log), what=f"{log!r} in the log")
        said = {face: self.say(i, *command) for face, command in {
            "--check": (BIN / "qscheduler", "--check", "-c", i.conf_file),
            "setqload --list": (BIN / "setqload", "--list", "-c", i.conf_file),
            "qtop -b -n 1": (BIN / "qtop", "-b", "-n", "1", "-c", i.conf_file)}.items()}
        done = i.inject(HELLO, "alice@test.example", check=False, uid=OUTSIDER if user else None)
        said["submitter"] = f"exit {done.returncode}: {done.stderr.decode().strip() or 'accepted'}"
        lines = [line for line in i.log().splitlines() if log and re.search(log, line)]
        said["log"] = lines[0] if lines else "-"
        self.record(what, i, said)
        return said, done

    def say(self, i, *command):
        done = subprocess.run([str(word) for word in command], env=i.environment(), capture_output=True,
                              text=True, check=False)
        return f"exit {done.returncode}\n{done.stdout}{done.stderr}"

    def record(self, what, i, said):
        out = os.environ.get("QSCHED_TROUBLES")
        if not out:
            return
        def cell(face, text):
            """Of a report, the lines of the trouble alone."""
            rows = [row for row in text.splitlines() if face in ("log", "submitter") or i.dir.name in row and
                    not row.endswith(": ok") and "in memory" not in row or row.startswith("exit")]
            return "<br>".join(" ".join(row.split()) for row in rows).replace(str(i.dir), "DIR").replace("|", "\\|")
        with open(out, "a", encoding="utf-8") as f:
            f.write(f"\n{what}\n\n| where | says |\n|---|---|\n")
            f.writelines(f"| {face} | {cell(face, text)} |\n" for face, text in said.items())

    def on_disk(self, options, **conf):
        """An instance on a file system of its own."""
        i = self.instance(queues=2, **conf)
        i.base.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"{options},mode=755", "tmpfs", i.base], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.base], check=False)
        return i.start_open()

    def shows(self, said, state, text):
        """All faces name the same thing."""
        for face in "setqload --list", "qtop -b -n 1", "--check", "log", "submitter":
            self.assertIn(text, said[face], face)
        self.assertIn(f"queue 1: {state}, no new mail: ", said["setqload --list"])
        self.assertRegex(said["qtop -b -n 1"], rf"(?m)^ *1 {state} ")

    @needs_root
    def test_D46_a_full_disk_is_told_everywhere_and_its_end_too(self):
        i = self.on_disk("size=8m", conf={"queue_minfree_bytes": "2m"})
        (i.base / "filler").write_bytes(b"x" * (7 << 20))
        wait(lambda: self.say(i, BIN / "setqload", "--list", "-c", i.conf_file).count("full, no new mail") == 2,
             what="both queues are full")
        said, done = self.trouble("A full disk", i, "ALERT: mail system full")
        self.shows(said, "full", f"{i.base} has ")
        self.assertIn(" free, queue_minfree_bytes wants 2 MB; new mail of users is refused", said["log"])
        self.assertEqual(done.returncode, 75)
        self.assertRegex(done.stderr, rb"^sendmail: 4\.3\.1 mail system full: .* has \d+ KB free, "
                                      rb"queue_minfree_bytes wants 1 MB even of root\n$")
        by_door = i.inject(HELLO, "alice@test.example", check=False, uid=OUTSIDER)
        self.assertEqual(by_door.returncode, 75)
        self.assertRegex(by_door.stderr, rb"^sendmail: 4\.3\.1 mail system full: .* queue_minfree_bytes wants 2 MB\n$")
        qmail = subprocess.run([i.face("qmail-queue")], input=HELLO, env=i.environment(), check=False,
                               capture_output=True)
        self.assertEqual(qmail.returncode, 53, qmail.stderr)
        (i.base / "filler").unlink()
        wait(lambda: i.log_has("new mail is accepted again"), what="the end in the log")
        wait(lambda: "no new mail" not in self.say(i, BIN / "setqload", "--list", "-c", i.conf_file), what="open queues")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.assertEqual(i.log().count("mail system full"), 2, "one line for the beginning, one for the end")
        i.stop()

    @needs_root
    def test_D46_no_inodes(self):
        i = self.on_disk("size=64m,nr_inodes=1000", conf={"queue_minfree_inodes": "200"})
        for n in range(os.statvfs(i.base).f_favail - 50):
            (i.base / f"filler{n}").touch()
        said, done = self.trouble("No free inodes", i, "ALERT: mail system full")
        self.assertRegex(said["log"], rf"{i.base} has \d+ inodes free, queue_minfree_inodes wants 200;")
        self.assertRegex(done.stderr, rb"mail system full: .* has \d+ inodes free, queue_minfree_inodes wants 100 even of root\n$")
        i.stop()

    @needs_root
    def test_D46_a_queue_on_a_full_disk_of_its_own_is_passed_over(self):
        i = self.instance(queues=2, conf={"queue_minfree_bytes": "1m"})
        for path in i.base, i.queue(2):
            path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", i.queue(2)], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.queue(2)], check=False)
        i.start_open()
        # Too full even for root, who may use half of what users have to leave.
        (i.queue(2) / "filler").write_bytes(b"x" * (15 << 18))
        wait(lambda: i.log_has(f"ALERT: mail system full: {i.queue(2)} has "), what="the ALERT")
        for _ in range(4):
            i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 4)
        self.assertNotIn("queue 1: full", self.say(i, BIN / "setqload", "--list", "-c", i.conf_file))
        self.assertEqual([line.split(":")[0] for line in i.log().splitlines() if "(queue active)" in line],
                         ["queue-send/1"] * 4)
        i.stop()

    @needs_root
    def test_D46_a_full_disk_of_queue_base_beside_a_queue_with_room(self):
        i = self.instance(queues=1, conf={"queue_minfree_bytes": "1m"})
        for path, size in (i.base, "1m"), (i.queue(1), "16m"):
            path.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", path], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", path], check=False)
        i.start_open()
        i.inject(HELLO, "alice@test.example", uid=OUTSIDER)
        i.wait_delivered("alice", 1)
        with open(i.base / "filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(b"x" * 4096):
                pass
        done = i.inject(HELLO, "alice@test.example", check=False, uid=OUTSIDER + 1)
        self.assertEqual(done.returncode, 75)
        self.assertEqual(done.stderr.decode(), f"sendmail: 4.3.1 mail system full: {i.base} has no space free\n")
        i.stop()

    @needs_root
    def test_D46_D9_a_read_only_disk(self):
        i = self.on_disk("size=16m")
        wait(lambda: subprocess.run(["mount", "-o", "remount,ro", i.base], check=False,
                                    capture_output=True).returncode == 0, what="a remount")
        wait(lambda: self.say(i, BIN / "setqload", "--list", "-c", i.conf_file).count("read-only, no new mail") == 2,
             what="both queues are read-only")
        said, done = self.trouble("A read-only disk", i, "ALERT: mail cannot be stored")
        self.shows(said, "read-only", f"{i.base}: Read-only file system")
        self.assertEqual(done.returncode, 75)
        subprocess.run(["mount", "-o", "remount,rw", i.base], check=True)
        wait(lambda: i.log_has("new mail is accepted again"), what="the end in the log")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    @needs_root
    def test_F13_a_wrong_mode_of_queue_drop(self):
        i = self.instance(queues=1)
        programs = i.dir / "programs.d"
        programs.mkdir()
        for program in BIN.iterdir():
            (programs / program.name).symlink_to(program)
        drop = programs / "queue-drop"
        drop.unlink()
        shutil.copy(BIN / "queue-drop", drop)
        shutil.chown(drop, "root", USERS["qdrop_group"])
        os.chmod(drop, 0o755)
        i.write_conf(program_dir=programs, reader_group="")
        i.start_open()
        said, done = self.trouble("A wrong mode of queue-drop", i, "queue-drop: uid 0", user=True)
        remedy = f"run: chown root:{USERS['qdrop_group']} {drop} && chmod 2711 {drop}"
        for face in "--check", "log":
            self.assertIn("mode 0755: it is not set-group-id for that group: users other than root cannot submit mail; "
                          + remedy, said[face], face)
        self.assertEqual(done.returncode, 75)
        self.assertIn(f"the gate is closed: {drop} (mode 0755, ".encode(), done.stderr)
        self.assertIn(b") is not set-group-id; ", done.stderr)
        subprocess.run(remedy.removeprefix("run: "), shell=True, check=True)
        i.inject(HELLO, "alice@test.example", uid=OUTSIDER)
        self.assertNotIn("queue-drop", self.say(i, BIN / "qscheduler", "--check", "-c", i.conf_file))
        gate = i.queue(1) / "gate"
        os.chmod(gate, 0o700)
        said, done = self.trouble("A wrong mode of the gate", i, None, user=True)
        self.assertIn(f"{gate}: uid ", said["--check"])
        self.assertIn(f"chmod 0710 {gate}", said["--check"])
        self.assertEqual(done.returncode, 75)
        self.assertIn(b"has its group, but the gate is closed to that", done.stderr)
        i.stop()
        i.start_open()
        i.inject(HELLO, "alice@test.example", uid=OUTSIDER)
        i.stop()

    def test_F12_a_queue_base_that_cannot_be_made(self):
        i = self.instance(queues=1)
        closed = i.dir / "closed"
        closed.mkdir(mode=0o500)
        if AS_ROOT:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", closed], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", closed], check=False)
        for base, why in ((i.dir / "none" / "q", "the directory above does not exist"),
                          (i.mail / "link", "must be a directory, and not a link"),
                          (closed / "q", f"does not exist, and cannot be made in {closed}: ")):
            if base.parent == i.mail:
                base.symlink_to(i.dir)
            i.write_conf(queue_base=base)
            said = self.say(i, BIN / "qscheduler", "--check", "-c", i.conf_file)
            self.assertIn(f"qscheduler: {base}: {why}", said)
            self.assertNotIn(": ok", said)
            done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], env=i.environment(), check=False,
                                  capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0, "the start fails, too")

    def wrong_file(self, what, path, line):
        """A wrong second line, and a reload: --check and the log name it."""
        i = self.instance(queues=1, aliases="root: alice\n")
        i.start_open()
        with open(getattr(i, path), "a", encoding="utf-8") as f:
            f.write(line)
        i.reload()
        place = f"{getattr(i, path)}:2: "
        said, done = self.trouble(what, i, re.escape(place))
        self.assertIn(place, said["--check"])
        self.assertEqual(done.returncode, 0, "mail goes on by what is right")
        i.stop()

    def test_F9_a_wrong_alias_line(self):
        self.wrong_file("A wrong alias line", "alias_file", "bob: b c\n")

    def test_F9_a_wrong_routing_file(self):
        self.wrong_file("A wrong routing file", "routing_file", "example.org nowhere:[x]\n")
