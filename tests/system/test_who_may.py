"""Who may do what: the table of docs/QCTL.md and that of qctl(8), tried cell by cell."""
import json
import pathlib
import re
import shutil
import subprocess

from case import SystemTest, cost, needs_root
from instance import BIN, USERS, wait

TOP = pathlib.Path(__file__).resolve().parents[2]
HELLO = b"Subject: hello\n\nhello\n"
LATER = "later.example smtp:127.0.0.1:1\n* local\n"
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
READERS, OPERATORS = "operator", "games"  # groups of every Debian
QMAIL = USERS.get("qmail_group")
# The columns, in their order.
ROLES = [("user", []), ("reader", [READERS]), ("operator", [OPERATORS]), ("member", [QMAIL]),
         ("both", [OPERATORS, QMAIL]), ("root", None)]
# The words of a command of the table; ID is a message of the queue.
WORDS = {
    "sendmail": "sendmail -f s@test.example alice@test.example",
    "queue-inject": "queue-inject -f s@test.example alice@test.example",
    "qctl list": "qctl list", "qctl show": "qctl show ID", "qctl explain": "qctl explain ID",
    "qctl shape": "qctl shape", "qctl sites": "qctl sites", "qctl shares": "qctl shares", "mailq": "mailq", "postqueue -p": "postqueue -p",
    "postqueue -j": "postqueue -j", "qread": "qread", "sendmail -bp": "sendmail -bp",
    "qctl show --content": "qctl show --content ID", "qctl check": "qctl check",
    "qctl rules": "qctl rules", "qctl hold --rule": "qctl hold --rule recipient=nobody@none.example --reason x",
    "qctl hold": "qctl hold ID", "qctl release": "qctl release ID", "qctl requeue": "qctl requeue ID",
    "qctl retry": "qctl retry ID", "qctl expire": "qctl expire ID",
    "qctl spread": "qctl spread ALL",
    "qctl delete": "qctl delete ID", "qctl undelete": "qctl undelete ID",
    "postsuper -h": "postsuper -h ID", "postsuper -H": "postsuper -H ID", "postsuper -r": "postsuper -r ID",
    "postsuper -d": "postsuper -d ID", "postsuper -e": "postsuper -e ID", "postsuper -f": "postsuper -f ID",
    "postqueue -f": "postqueue -f", "postqueue -i": "postqueue -i ID", "postqueue -s": "postqueue -s later.example",
    "sendmail -q": "sendmail -q",
    "qctl requeue --failed": "qctl requeue --failed ID",
    "qctl check --repair": "qctl check --repair", "postsuper -s": "postsuper -s",
    "setqload": "setqload -q 1 45", "setqload --list": "setqload --list", "qtop": "qtop -b -n 1",
    "qread -i": "qread -i", "qctl route": "qctl route alice@test.example",
    "qctl trace": "qctl trace later.example --for 1s",
}
REPAIRS = ("qctl check --repair", "postsuper -s")
EXPIRES = ("qctl expire", "postsuper -e", "postsuper -f")
# Where the message has to be for an act.
BEFORE = {"release": "hold", "-H": "hold", "undelete": "delete", "-f": "hold"}


def rows_of_page():
    """[(commands, cells)] of the table in docs/QCTL.md."""
    text = (TOP / "docs/QCTL.md").read_text().split("## Who may do what")[1].split("\n## ")[0]
    found = []
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| `"):
            found.append((re.findall(r"`([^`]+)`", cells[0]), [c == "yes" for c in cells[1:]], "stopped" in cells[0]))
    return found


def rows_of_manual():
    text = (TOP / "etc/man/qctl.8").read_text().split(".Ss Who may do what")[1].split("\n.S")[0]
    found = []
    for item in text.split(".It ")[1:]:
        line = item.splitlines()[0]
        cells = [c.strip() for c in line.split(" Ta ")]
        if cells[-1] in ("yes", "\\-"):
            found.append([c == "yes" for c in cells[1:]])
    return found


@needs_root
class WhoMay(SystemTest):
    def prepared(self):
        i = self.running(queues=1, routing=LATER,
                         conf=HOUR | {"reader_group": READERS, "operator_group": OPERATORS})
        i.looker()
        for name in ("sendmail", "queue-inject"):
            i.face(name)
        for name in ("setqload", "qtop"):
            shutil.copy(BIN / name, i.dir / name)
        return i

    def ids(self, i):
        done = subprocess.run([BIN / "qctl", "list", "--json", "recipient=x@*"], env=i.environment(),
                              capture_output=True, check=True)
        return [json.loads(line)["queue_id"] for line in done.stdout.splitlines()]

    def message(self, i):
        """The id of the one message, made anew when it has left."""
        if not self.ids(i):
            i.inject(HELLO, "x@later.example", sender="")
        return wait(lambda: self.ids(i), what="the message")[0]

    def call(self, i, words, groups):
        name, *rest = words
        path = i.dir / (name if (i.dir / name).exists() else "qctl")
        who = {} if groups is None else {"user": "nobody", "group": "nogroup", "extra_groups": groups}
        return subprocess.run([str(path) if name == path.name else name, *rest], executable=path, input=HELLO,
                              capture_output=True, check=False, env=i.environment() | {"TERM": "dumb"}, **who)

    def move(self, i, one, *verbs):
        for verb in verbs:
            subprocess.run([BIN / "qctl", verb, one], env=i.environment(), capture_output=True, check=False)

    def place(self, i, words):
        """The id of a message in deferred/, or where the act takes it from."""
        state = next((BEFORE[w] for w in words if words[0] in ("qctl", "postsuper") and w in BEFORE), None)
        one = self.message(i)
        self.move(i, one, "undelete", "release", *([state] if state else []))
        where = {"hold": "hold", "delete": "deleted", None: "deferred"}[state]
        wait(lambda: i.files(where) and not i.files("incoming", "active"), what=f"in {where}")
        return one

    @cost(20)
    def test_A4_each_cell_of_the_table(self):
        i = self.prepared()
        rows = rows_of_page()
        tried = {command for commands, _, stopped in rows for command in commands if not stopped}
        self.assertEqual(tried, set(WORDS))
        for commands, cells, stopped in rows:
            self.assertEqual(len(cells), len(ROLES))
            for command in () if stopped else commands:
                for (role, groups), may in zip(ROLES, cells):
                    one = self.place(i, WORDS[command].split())
                    self.try_cell(i, one, command, role, groups, may)
        one = self.message(i)
        i.stop()
        for commands, cells, stopped in rows:
            for command in commands if stopped else ():
                for (role, groups), may in zip(ROLES, cells):
                    self.move(i, one, "undelete", "release")
                    self.try_cell(i, one, command, role, groups, may)

    def try_cell(self, i, one, command, role, groups, may):
        words = [one if w == "ID" else w for w in WORDS[command].split()]
        done = self.call(i, words, groups)
        said = f"{role}: {' '.join(words)}: {done.returncode}: {done.stdout}{done.stderr}"
        if not may:
            self.assertEqual(done.returncode, 77, said)
            self.assertNotIn(b"later.example", done.stdout + done.stderr, said)
        elif command in REPAIRS:
            self.assertNotIn(done.returncode, (0, 77), said)  # a queue that runs is refused
        else:
            self.assertEqual(done.returncode, 0, said)
            if command in EXPIRES:
                wait(lambda: one not in self.ids(i), what="given up")


class Manual(SystemTest):
    def test_the_manual_has_the_same_table(self):
        self.assertEqual(rows_of_manual(), [cells for _, cells, _ in rows_of_page()])
