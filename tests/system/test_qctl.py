"""Messages in the queues, as an operator reads them (qctl(8))."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from case import SystemTest, cost, needs_root
from hung_disk import HungDisk, missing
from instance import BIN, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
LATER = 'later.example smtp:127.0.0.1:1\nbad.example error:"no"\n* local\n'  # 1: refused
PLUGINS = pathlib.Path("/usr/lib/nagios/plugins")


class Lists(SystemTest):
    def call(self, i, *words, name="qctl", status=0, text=None, **options):
        done = subprocess.run([name, *words], executable=BIN / "qctl", input=text, text=True,
                              capture_output=True, check=False, env=i.environment(), **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def rows(self, i, *words):
        return [json.loads(line) for line in self.call(i, "list", "--json", *words).stdout.splitlines()]

    def waiting(self, count=4, **options):
        """An instance with so many messages that wait, in two queues, and one
        that has failed; nothing of it moves any more."""
        i = self.running(queues=2, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}, **options)
        for n in range(count):
            i.inject(HELLO, f"r{n}@later.example", "b@bad.example", sender=f"s{n}@test.example")
        i.inject(HELLO, "b@bad.example", sender="")
        wait(lambda: len(i.files("deferred")) == count and len(i.files("hold")) == 1 and
             not i.files("active", "incoming"), what="all deferred")
        return i

    def test_empty(self):
        i = self.running()
        self.assertEqual(self.call(i, "list").stdout, "Mail queue is empty\n")
        self.assertEqual(self.call(i, "-p", name="postqueue").stdout, "Mail queue is empty\n")
        self.assertEqual(self.call(i, "-j", name="postqueue").stdout, "")

    def test_forms_of_the_list(self):
        i = self.waiting()
        listed = self.call(i, "-p", name="/usr/sbin/postqueue").stdout
        self.assertEqual(listed.count("Request"), 1, "one total, however many queues")
        self.assertRegex(listed.splitlines()[0], r"^-Queue ID-  +--Size-- ")
        self.assertRegex(listed, r"-- \d+ Kbytes in 5 Requests\.\n$")
        rows = self.rows(i)
        self.assertEqual({row["queue"] for row in rows} | {1, 2}, {1, 2})
        self.assertEqual([row["queue_name"] for row in rows].count("deferred"), 4)
        for row in rows:
            self.assertIn(row["queue_id"], listed)
            for name in ("arrival_time", "message_size", "forced_expire", "sender"):
                self.assertIn(name, row)
            for rcpt in row["recipients"]:
                self.assertIn(rcpt["address"], listed)
                self.assertRegex(rcpt["delay_reason"], r"^[45]\.\d+\.\d+ ")
        # sendmail -bp, with qctl beside it as it is installed
        shutil.copy(BIN / "qctl", i.dir / "qctl")
        done = subprocess.run([i.face("sendmail"), "-bp"], capture_output=True, text=True,
                              check=False, env=i.environment())
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(listed.splitlines()), done.stderr)
        i.face("sendmail").rename(i.dir / "mailq")
        done = subprocess.run([i.dir / "mailq", "-Ac"], capture_output=True, text=True, check=False,
                              env=i.environment())
        self.assertIn("in 5 Requests.", done.stdout, done.stderr)

    def test_programs_that_read_lists(self):
        i = self.waiting()
        links = i.dir / "bin"
        links.mkdir()
        for name in ("mailq", "postqueue"):
            (links / name).symlink_to(BIN / "qctl")
        env = i.environment() | {"PATH": f"{links}:{os.environ['PATH']}"}
        # The idiom of twenty years: ids of one sender, by paragraphs.
        done = subprocess.run("postqueue -p | tail -n +2 | awk 'BEGIN { RS = \"\" } "
                              "$7 == \"s2@test.example\" { print $1 }' | tr -d '*!'",
                              shell=True, env=env, capture_output=True, text=True, check=True)
        (row,) = self.rows(i, "sender=s2@test.example")
        self.assertEqual(done.stdout.split(), [row["queue_id"]])
        done = subprocess.run("mailq | grep -c '^[0-9A-F]'; mailq | tail -n 1 | cut -d' ' -f5",
                              shell=True, env=env, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), ["5", "5"])

    def test_a_monitoring_plugin_reads_the_total(self):
        if not (PLUGINS / "check_mailq").exists():
            self.skipTest(f"no check_mailq in {PLUGINS}")
        i = self.waiting()
        (i.dir / "mailq").symlink_to(BIN / "qctl")
        shutil.copy(PLUGINS / "check_mailq", i.dir)
        paths = (PLUGINS / "utils.pm").read_text()  # where the programs of this system are
        (i.dir / "utils.pm").write_text(re.sub(r'(PATH_TO_MAILQ *=).*', rf'\1 "{i.dir}/mailq";', paths))
        for warn, status in (("9", 0), ("3", 1)):
            done = subprocess.run([i.dir / "check_mailq", "-M", "postfix", "-w", warn, "-c", "10"],
                                  env=i.environment(), capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn("mailq (5) is", done.stdout) if warn == "9" else self.assertIn("is 5", done.stdout)

    def test_filters(self):
        i = self.waiting()
        for words, count in ((["sender=s1@*"], 1), (["sender=<>"], 1), (["sender=s1@*", "sender=s2@*"], 2),
                             (["domain=later.example"], 4), (["domain=bad.example"], 5),
                             (["domain=later.example", "recipient=b@bad.example"], 0),
                             (["reason=refused", "domain=later.example"], 4),
                             (["state=hold"], 1), (["state=active,incoming"], 0), (["queue=1-2"], 5),
                             (["older=1h"], 0), (["younger=1h"], 5), (["larger=1m"], 0),
                             (["smaller=1m", "ALL"], 5)):
            self.assertEqual(len(self.rows(i, *words)), count, words)
        self.assertEqual(self.call(i, "list", "older=1h").stdout, "No message fits\n")
        ids = [row["queue_id"] for row in self.rows(i)]
        some = self.call(i, "list", "--json", "-", "state=deferred",
                         text="".join(f"{id}*  x\n" for id in ids))
        self.assertEqual(some.stdout.count("\n"), 4)
        self.assertEqual(self.call(i, "list", "-", text="").stdout, "", "no id is not every id")
        shape = self.call(i, "shape").stdout.splitlines()
        self.assertEqual([line.split()[:3] for line in shape],
                         [["T", "5", "10"], ["TOTAL", "9", "9"], ["bad.example", "5", "5"],
                          ["later.example", "4", "4"]])

    def test_show_finds_a_message_wherever_it_is(self):
        i = self.waiting()
        i.stop()
        row = self.rows(i, "sender=s0@*")[0]
        shown = self.call(i, "show", row["queue_id"], "--content").stdout
        self.assertIn("Recipient (pending): <r0@later.example>", shown)
        self.assertIn("Recipient (failed): <b@bad.example>", shown)
        self.assertRegex(shown, r"Due: .* \(in \d+m\)")
        self.assertIn(f"id {row['queue_id']};", shown, "the content")
        (path,) = [p for p in i.files("deferred") if f"File: {p}\n" in shown]
        for state in (f"incoming/{path.parent.name}", "hold", "corrupt"):
            there = i.queue(3 - row["queue"]) / state / path.name
            path.rename(there)
            path = there
            shown = self.call(i, "show", row["queue_id"]).stdout
            self.assertIn(f"File: {path}\n", shown)
        self.call(i, "show", row["queue_id"][:-1] + "F", status=65)
        self.assertEqual(len(self.rows(i)), 4, "corrupt is no mail that waits")
        self.assertEqual(len(self.rows(i, "state=corrupt")), 1)

    def test_stopped_with_a_wrong_configuration(self):
        i = self.waiting()
        i.stop()
        i.write_conf(queue_count="many")
        done = self.call(i, "list")
        self.assertIn("in 5 Requests.", done.stdout)
        self.assertIn("the configuration in force is used", done.stderr)

    def test_A7_escapes_and_damage_are_harmless(self):
        i = self.waiting(count=2)
        i.stop()
        for path in i.files("defer"):
            text = path.read_bytes()
            path.write_bytes(text.replace(b"connect", b"\033[2J\x9b1m\xc2\x9b") +
                             b"0\t" * 5 + b"x" * 100000 + b"\nhalf a line")
        broken = i.files("deferred")[0]
        with open(broken, "r+b") as f:
            f.seek(-20, os.SEEK_END)
            f.write(b"\033]0;x\007")
        (i.queue(1) / "hold" / "\033[2J").write_bytes(b"no message")
        for words in (["list"], ["list", "--json"], ["show", "ALL"], ["shape"]):
            done = subprocess.run([BIN / "qctl", *words], capture_output=True, check=False,
                                  env=i.environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            said = done.stdout + done.stderr
            self.assertFalse(re.search(rb"[\x00-\x08\x0b-\x1f\x7f\x9b]", said), said)
            if words != ["shape"]:
                self.assertIn(b"trailer", said)
        self.assertIn("[2J", self.call(i, "list").stdout)

    @needs_root
    def test_permission(self):
        i = self.waiting(count=1)
        nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        qctl = shutil.copy(BIN / "qctl", i.dir / "qctl")
        done = subprocess.run([qctl, "list"], capture_output=True, text=True, check=False,
                              env=i.environment(), **nobody)
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertRegex(done.stderr, r"^qctl: no permission to read the queues; .*\n$")
        nobody["extra_groups"] = [USERS["qmail_group"]]
        done = subprocess.run([qctl, "list"], capture_output=True, text=True, check=False,
                              env=i.environment(), **nobody)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in 2 Requests.", done.stdout)
        self.assertIn("refused)", done.stdout, "a member of the group reads the reasons")

    @needs_root
    @cost(30)
    def test_a_disk_that_hangs_hides_no_other_queue(self):
        reason = missing()
        if reason:
            self.skipTest(reason)
        i = self.instance(queues=2, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h", "disk_time_limit": "5s"})
        with contextlib.closing(HungDisk(i.dir / "disk", i.queue(2))) as disk:
            i.start()
            for n in range(4):
                i.inject(HELLO, f"r{n}@later.example")
            wait(lambda: len(i.files("deferred")) == 4, what="all deferred")
            i.stop()
            there = {row["queue"] for row in self.rows(i)}
            self.assertEqual(there, {1, 2})
            disk.remount()
            disk.hang()
            done = self.call(i, "list", "--json", status=75)
            self.assertEqual({json.loads(line)["queue"] for line in done.stdout.splitlines()}, {1})
            self.assertEqual(done.stderr, "qctl: queue 2: its disk does not answer; what it holds is "
                                          "not shown\n")
