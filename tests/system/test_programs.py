"""Programs and scripts that were written for other mail systems, unchanged, on the
lists and acts that have their names: a monitoring plug-in, an exporter, and the
lines of shell and Perl that administrators have kept for decades."""
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess

from instance import AS_ROOT, BIN, USERS, wait
from test_qctl import HELLO, Queues

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = pathlib.Path("/usr/lib/nagios/plugins/check_mailq")
SUFFIXES = "tr -d '*!#'"
# From the manual of postsuper: the one recipient of a message, by paragraphs.
BY_RECIPIENT = """mailq | tail -n +2 | grep -v '^ *(' | awk 'BEGIN { RS = "" }
    { if ($8 == "%s" && $9 == "") print $1 }' | tr -d '*!' | postsuper -d -"""
# A script that has been passed on since 2003 under the name pfdel.
PFDEL = r"""
my $wanted = shift;
open(my $queue, "postqueue -p |") or die "cannot list: $!\n";
<$queue>;
$/ = "";
while (<$queue>) {
	next unless / \Q$wanted\E(\s|$)/m;
	my ($id) = split(/\s+/, $_, 2);
	$id =~ s/[*!]//;
	next unless $id =~ /^[0-9A-F]+$/;
	system("postsuper", "-h", $id) == 0 or die "postsuper: $?\n";
}
"""


def user():
    """The user of this process, as `qctl shape --by uid` shows one."""
    try:
        return f"{os.getuid()}({pwd.getpwuid(os.getuid()).pw_name})"
    except KeyError:
        return str(os.getuid())


class Programs(Queues):
    def named(self, i):
        """The environment in which the faces have their names."""
        links = i.dir / "bin"
        links.mkdir()
        for name in ("mailq", "postqueue", "postsuper"):
            (links / name).symlink_to(BIN / "qctl")
        return i.environment() | {"PATH": f"{links}:{os.environ['PATH']}"}

    def shell(self, env, line, status=0):
        done = subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def senders(self, i, *words):
        names = (row["sender"].partition("@")[0] for row in self.rows(i, *words))
        return sorted("" if name == "MAILER-DAEMON" else name for name in names)

    # ---- monitoring ----

    def plugin(self, i, *words):
        (i.dir / "mailq").unlink(missing_ok=True)
        (i.dir / "mailq").symlink_to(BIN / "qctl")
        shutil.copy(PLUGIN, i.dir)
        paths = (PLUGIN.parent / "utils.pm").read_text()  # where the programs of this system are
        (i.dir / "utils.pm").write_text(re.sub(r"(PATH_TO_MAILQ *=).*", rf'\1 "{i.dir}/mailq";', paths))
        done = subprocess.run([i.dir / "check_mailq", "-M", "postfix", *words], env=i.environment(),
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_check_mailq_of_monitoring_plugins(self):
        if not PLUGIN.exists():
            self.skipTest(f"no {PLUGIN}")
        i = self.running()
        self.assertEqual(self.plugin(i, "-w", "1", "-c", "2")[0], 0)
        i.stop()
        i = self.waiting()
        for warn, crit, status, said in ((9, 10, 0, r"^OK: postfix mailq \(5\) is below threshold \(9/10\)\|unsent=5;9;10;0"),
                                         (5, 10, 1, "^WARNING: postfix mailq is 5 "), (3, 5, 2, "^CRITICAL: postfix mailq is 5 ")):
            got, out = self.plugin(i, "-w", str(warn), "-c", str(crit))
            self.assertEqual(got, status, out)
            self.assertRegex(out, said)
        i.stop()
        shutil.move(i.base, i.dir / "elsewhere")  # no queue to be read is no empty queue
        got, out = self.plugin(i, "-w", "9", "-c", "10")
        self.assertEqual(got, 2, out)
        self.assertIn("Error code 69", out)
        shutil.move(i.dir / "elsewhere", i.base)

    def test_an_exporter_reads_the_json(self):
        i = self.waiting()
        env = self.named(i)
        done = subprocess.run([HERE / "queue_exporter.py"], env=env, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        figures = dict(re.findall(r"^mailqueue_(.*) (\d+)$", done.stdout, re.M))
        rows = self.rows(i)
        want = {'messages{queue="deferred"}': 4, 'messages{queue="hold"}': 1, "forced_expire": 0, "up": 1,
                'bytes{queue="deferred"}': sum(r["message_size"] for r in rows if r["queue_name"] == "deferred"),
                'age_seconds_bucket{queue="deferred",le="+Inf"}': 4, 'recipients{domain="later.example"}': 4,
                'recipients{domain="bad.example"}': 5, 'senders{domain="test.example"}': 4, 'reasons{code="4.4.1"}': 4}
        self.assertEqual({key: int(figures.get(key, -1)) for key in want}, want)
        # The members that readers know are of the types that they know.
        for row in rows:
            self.assertEqual({name: type(row[name]) for name in (
                "queue_name", "queue_id", "arrival_time", "message_size", "forced_expire", "sender")},
                {"queue_name": str, "queue_id": str, "arrival_time": int, "message_size": int,
                 "forced_expire": bool, "sender": str})
            self.assertTrue(row["recipients"])
        (shortest,) = json.loads(f"[{min(self.call(i, '-j', name='postqueue').stdout.splitlines(), key=len)}]")
        self.assertEqual(next(iter(shortest)), "queue_name", "the order of Postfix")

    # ---- shell ----

    def test_counts_and_ids(self):
        i = self.waiting()
        env = self.named(i)
        ids = sorted(row["queue_id"] for row in self.rows(i))
        for line, want in (
                ("mailq | grep -c '^[0-9A-F]'", ["5"]),
                ("mailq | tail -n 1 | cut -d' ' -f5", ["5"]),
                ("postqueue -p | tail -n 1 | awk '{ print $5 }'", ["5"]),
                ("postqueue -p | awk '/Request/ { print $5 }'", ["5"]),
                ("postqueue -p | grep -c MAILER-DAEMON", ["1"]),
                (f"mailq | awk '/^[0-9A-F]/ {{ print $1 }}' | {SUFFIXES} | sort", ids),
                ("postqueue -p | awk '/^[0-9A-F]/ { print $7 }' | sort | uniq -c | sort -rn | awk '{ print $1 }'", ["1"] * 5),
                ("postqueue -j | jq -r 'select(.queue_name == \"deferred\") | .recipients[].address' | sort -u",
                 ["b@bad.example"] + [f"r{n}@later.example" for n in range(4)])):
            if "jq" in line and not shutil.which("jq"):
                continue
            with self.subTest(line):
                self.assertEqual(self.shell(env, line).stdout.split(), want)

    def test_deletes_by_sender(self):
        i = self.waiting()
        env = self.named(i)
        for n, line in enumerate((
                "postqueue -p | tail -n +2 | awk 'BEGIN { RS = \"\" } $7 == \"s0@test.example\" { print $1 }' | "
                "tr -d '*!' | postsuper -d -",
                "mailq | awk '/s1@test.example/ { print $1 }' | tr -d '*!' | postsuper -d -",
                "for id in $(postqueue -p | grep 's2@test.example' | cut -d' ' -f1 | tr -d '!*'); do "
                "postsuper -d $id; done")):
            with self.subTest(line):
                self.assertEqual(self.shell(env, line).stderr, "postsuper: Deleted: 1 message\n")
                self.assertEqual(self.senders(i), [""] + [f"s{k}" for k in range(n + 1, 4)])
        # Held mail has a mark behind its id.
        self.shell(env, "postqueue -p | grep '^[0-9A-F].*s3@' | awk '{ print $1 }' | postsuper -h -")
        self.assertEqual(self.shell(env, "mailq | grep -c '^[0-9A-F]*! '").stdout, "2\n")
        self.shell(env, "mailq | grep 's3@test.example' | awk '{ print $1 }' | tr -d '*!' | postsuper -H -")
        self.assertEqual(self.shell(env, "mailq | grep -c '^[0-9A-F]*! '").stdout, "1\n")
        self.shell(env, "mailq | awk '/MAILER-DAEMON/ { print $1 }' | tr -d '*!' | postsuper -d -")
        self.assertEqual(self.senders(i), ["s3"])
        self.shell(env, "postsuper -d ALL")
        self.assertEqual(self.shell(env, "mailq").stdout, "Mail queue is empty\n")
        self.assertEqual(self.senders(i, "state=deleted"), ["", "s0", "s1", "s2", "s3"])

    def test_deletes_by_recipient(self):
        i = self.waiting()
        env = self.named(i)
        i.inject(HELLO, "r9@later.example", sender="s9@test.example")
        i.inject(HELLO, "r9@later.example", "r8@later.example", sender="s8@test.example")
        wait(lambda: len(self.rows(i, "state=deferred")) == 6, what="two more")
        self.assertEqual(self.shell(env, BY_RECIPIENT % "r9@later.example").stderr, "postsuper: Deleted: 1 message\n")
        self.assertNotIn("s9", self.senders(i))
        self.assertIn("s8", self.senders(i), "has another recipient, too")
        # A recipient that is delivered does not stand there: b@bad.example failed.
        self.assertEqual(self.shell(env, BY_RECIPIENT % "nobody@later.example").stdout, "")
        self.assertEqual(len(self.rows(i)), 6)
        (i.dir / "pfdel").write_text(PFDEL)
        self.shell(env, f"perl {i.dir}/pfdel r8@later.example")
        self.assertEqual(self.senders(i, "state=hold"), ["", "s8"])

    def test_messages_in_delivery(self):
        i = self.instance(queues=1, routing="slow.example pipe:slow\n* local\n")
        go = i.dir / "go"
        user = USERS["maildir_user"] if AS_ROOT else "-"
        i.programs_file.write_text(f'slow {user} /bin/sh -c "until test -e {go}; do sleep 0.1; done"\n')
        i.start()
        i.inject(HELLO, "a@slow.example", sender="s@test.example")
        env = self.named(i)
        wait(lambda: len(i.files("active")) == 1, what="in delivery")
        self.assertEqual(self.shell(env, "mailq | grep -c '^[0-9A-F]*\\* '").stdout, "1\n")
        id = self.shell(env, f"mailq | awk '/s@test/ {{ print $1 }}' | {SUFFIXES}").stdout.strip()
        self.assertEqual(id, self.rows(i)[0]["queue_id"])
        go.touch()
        i.wait_empty()

    # ---- qshape ----

    def test_the_form_of_qshape(self):
        """A header, TOTAL, then destinations; each number stands right below its
        age, so that scripts cut by column or by field."""
        i = self.waiting()
        for words, rows in (([], {"TOTAL": 9, "bad.example": 5, "later.example": 4}),
                            (["--by", "sender-domain"], {"TOTAL": 5, "test.example": 4, "MAILER-DAEMON": 1}),
                            (["--senders"], {"TOTAL": 5, "MAILER-DAEMON": 1} | {f"s{k}@test.example": 1 for k in range(4)}),
                            (["--by", "uid"], {"TOTAL": 5, user(): 5})):
            lines = self.call(i, "shape", *words).stdout.splitlines()
            ages = lines[0].split()
            self.assertEqual(ages, "T 5 10 20 40 80 160 320 640 1280 1280+".split())
            ends = [m.end() for m in re.finditer(r"\S+", lines[0])]
            got = {}
            for line in lines[1:]:
                fields = line.split()
                self.assertEqual(len(fields), 12, line)
                self.assertEqual([m.end() for m in re.finditer(r"\S+", line)][1:], ends, line)
                self.assertEqual(int(fields[1]), sum(map(int, fields[2:])), line)
                got[fields[0]] = int(fields[1])
            self.assertEqual(got, rows)
            self.assertEqual(next(iter(got)), "TOTAL")
