"""Manual pages beside the programs: what --help says stands in the page, and what
the page says in --help; each switch of a face is known to it, and no other."""
import os
import re
import string
import subprocess
import tempfile
import unittest

from instance import BIN, ROOT

MAN = ROOT / "etc/man"
# Programs that have --help, and their pages.
HELPED = {"qscheduler": "qscheduler.8", "queue-inject": "queue-inject.1", "setqload": "setqload.8",
          "qtop": "qtop.8", "qctl": "qctl.8", "qsim": "qsim.1"}
# Faces: the page, and what a face says to a switch that it does not know.
FACES = {"sendmail": ("qscheduler-sendmail.1", "unknown switch"),
         "postqueue": ("qctl.8", "unknown option"), "postsuper": ("qctl.8", "unknown option"),
         "qread": ("qctl.8", "unknown option")}
# Programs without a switch: daemons, the door, and names that look at no argument.
PLAIN = {"queue-send", "todo-proc", "deliver-local", "deliver-smtp", "queue-drop", "mailq",
         "newaliases", "qmail-queue"}
# Switches of a face that callers give for its own sake, and that lists do not name.
OWN = {"postqueue": set("cv"), "postsuper": set("cvefpsS")}
SUFFIXES = ("_limit", "_time", "_file", "_lifetime", "_interval", "_user", "_group", "_base", "_count", "_max", "_path")
MEMBERS = {"due_time", "arrival_time"}  # of postqueue -j
HELP_ROW = re.compile(r"^  (?:(-\w)(?:, )?)?(--[a-z][a-z-]*)?(?: [A-Z]\S*)?(?:  |$)", re.M)
VERB_ROW = re.compile(r"^  ([a-z]+(?:, [a-z]+)*)  ", re.M)


def said(name, *words):
    done = subprocess.run([BIN / name, *words], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env={"PATH": "", "QSCHED_CONF": "/nonexistent/conf"})
    return done.stdout + done.stderr


def section(text, name):
    found = re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)
    return found.group(1) if found else ""


def flags(line, bundled=True):
    """The options of a line of macros: `.Fl s | Fl d`, `.Op Fl Fl for Ar time`.
    `Fl itv` is three letters, or (bundled is false) a letter with its value."""
    found = {"--" + name for name in re.findall(r"Fl Fl ([a-z][a-z-]*)", line)}
    for word in re.findall(r"(?<!Fl )Fl (?!Fl )(\w+)", line):
        found |= {"-" + letter for letter in (word if bundled else word[0])}
    return found


def of_synopsis(text, name, main):
    """Options of one name in SYNOPSIS; a bare .Nm is the first name of the page."""
    found, current = set(), main
    for line in section(text, "SYNOPSIS").splitlines():
        if line.startswith(".Nm"):
            current = line[4:].split()[0] if line[4:].split() else main
        elif current == name:
            found |= flags(line)
    return found


def of_lists(text):
    """Options that a list explains, of all sections."""
    return set().union(*(flags(line, False) for line in text.splitlines() if line.startswith(".It Fl")))


class Manuals(unittest.TestCase):
    def test_every_program_is_compared(self):
        there = {path.name for path in BIN.iterdir() if os.access(path, os.X_OK)}
        self.assertEqual(there, set(HELPED) | set(FACES) | PLAIN)

    def test_options(self):
        for name, page in HELPED.items():
            with self.subTest(page):
                text, helped = (MAN / page).read_text(), said(name, "--help")
                self.assertTrue(helped.startswith(f"usage: {name} "), helped)
                rows = {option for row in HELP_ROW.findall(helped) for option in row if option}
                usage = helped.split("\n\n")[0]
                rows |= {f"-{letter}" for letter in re.findall(r"[\[ ]-(\w)\b", usage)}
                rows |= set(re.findall(r"--[a-z][a-z-]*", usage))
                synopsis, lists = of_synopsis(text, name, name), of_lists(text)
                named = [set(row) - {""} for row in HELP_ROW.findall(helped)]  # one option, or two names
                self.assertEqual([row for row in named if row and not row & synopsis], [])
                self.assertEqual(synopsis - rows, set(), "--help does not have")
                self.assertEqual(rows - lists - {"--help", "--version"}, set(), "no list explains")
                self.assertEqual(lists - rows, set(), "the program does not have")

    def test_verbs(self):
        for name in ("qctl", "qsim"):
            with self.subTest(name):
                text, helped = (MAN / HELPED[name]).read_text(), said(name, "--help")
                verbs = {verb for row in VERB_ROW.findall(helped) for verb in row.split(", ")}
                self.assertTrue(verbs)
                synopsis = section(text, "SYNOPSIS").replace("|", " ")
                told = {word for line in re.findall(r"^\.Cm (.+)$", synopsis, re.M)
                        for word in re.findall(r"\b[a-z]{4,}\b", line)} - {"json"}
                self.assertEqual(verbs, told)
                lists = {word for line in re.findall(r"^\.It Cm (.+)$", text, re.M) for word in line.split()}
                self.assertEqual(verbs - lists, set(), "no list explains")
                wrong = said(name, "no-such-verb")
                self.assertEqual([v for v in verbs if v not in wrong], [], wrong)

    def test_filters(self):
        text = section((MAN / "qctl.8").read_text(), "DESCRIPTION")
        told = set(re.findall(r"Cm ([a-z]+) Ns = Ns Ar", text))
        self.assertEqual(told, set(re.findall(r"^  ([a-z]+)=[A-Z]", said("qctl", "--help"), re.M)))

    def test_switches_of_faces(self):
        for name, (page, unknown) in FACES.items():
            with self.subTest(name):
                text = (MAN / page).read_text()
                known = {letter for letter in string.ascii_letters + string.digits
                         if unknown not in said(name, "-" + letter)}
                told = {option[1] for option in of_synopsis(text, name, "") if option[:2] != "--"}
                if name == "sendmail":
                    told |= {option[1] for option in of_lists(text)}
                    accepted = text.split("Accepted without effect:")[1].split("Switches that")[0]
                    told |= {m[0] for m in re.findall(r"\b([A-Za-z][A-Za-z]?) [,;.]", accepted)}
                    told |= {letter for line in re.findall(r"^\.Fl (\w)$", accepted, re.M) for letter in line}
                self.assertEqual(known - told - OWN.get(name, set()), set(), "the page does not have")
                self.assertEqual(told - known, set(), "the program does not know")

    # mutation: etc/man/qctl.8, a row of "Who may do what" with a first cell that is wider than its column.
    def test_pages_fit_80_columns(self):
        for page in sorted(MAN.glob("*.[1-8]")):
            with self.subTest(page.name):
                done = subprocess.run(["groff", "-man", "-t", "-ww", "-Tutf8", "-rLL=78n", page], capture_output=True,
                                      text=True, check=True)
                self.assertEqual(done.stderr, "")

    def test_parameters(self):
        """The manual and the sample have the rows of param.def, in their order."""
        table = (ROOT / "common/config/param.def").read_text()
        rows = re.findall(r"^T?PARAM\(\w+, (\w+),", table, re.M)
        self.assertGreater(len(rows), 50)
        self.assertEqual(re.findall(r"^\.It Sy (\w+)", said("qscheduler", "--manual"), re.M), rows)
        sample = re.findall(r"^#? ?([a-z]\w+) =", said("qscheduler", "--sample"), re.M)
        self.assertEqual(sample, rows)

    def test_parameters_that_pages_name(self):
        """A name of a parameter in any page is one of the table."""
        table = (ROOT / "common/config/param.def").read_text()
        rows = set(re.findall(r"^T?PARAM\(\w+, (\w+),", table, re.M))
        for page in sorted(MAN.iterdir()):
            words = set(re.findall(r"^\.(?:Va|Cm) ([a-z]+_[a-z_]+)", page.read_text(), re.M))
            words = {w for w in words if w.endswith(SUFFIXES)} - MEMBERS
            general = {w: "default_" + w.removeprefix("transport_") for w in words}
            self.assertEqual([w for w in words if not {w, general[w]} & rows], [], page.name)


if __name__ == "__main__":
    unittest.main()
