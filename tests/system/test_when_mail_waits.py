"""docs/WHEN-MAIL-WAITS.md: each command runs, and prints what stands there."""
import re
import subprocess

from case import SystemTest, cost
from instance import BIN, ROOT
from page_world import World

PAGE = ROOT / "docs/WHEN-MAIL-WAITS.md"
# Folders with the texts of programs.
PROGRAMS = ("common", "qctl", "qscheduler", "setqload", "qtop", "queue-send", "queue-inject", "todo-proc",
            "deliver-local", "deliver-smtp")
# Quoted commands, and texts that are put together from parts or are not of our programs.
COMMANDS = ("qctl", "setqload", "grep", "find", "du", "df", "echo", "systemctl", "qtop", "dmesg", "iostat", "sendmail",
            "postsuper", "journalctl", "qscheduler", "newaliases")
COMPOSED = (
    "smtp_host_lookup = native", "unable to get local issuer certificate", "relay=alias … 1 recipient as ID",
    "status=sent (delivered to maildir)", "host.example.com local", "open, disk late for 12 s (a move waits)",
    "late: a move has waited for the disk for 1s",
    "not enough room in /dev/shm", "not enough room in /dev/shm: 65000 of 65536 KB and 0 of 200 inodes are free",
    "Damaged: content checksum differs from the one stored at acceptance. It is not delivered.",
    "disabled, for a fault: its disk does not answer", "disabled, for a fault")
# What differs from run to run; the order matters.
# A reason loses its middle where the paths of this place are long.
VARIES = ((r"(times in a row, ended with status).*", r"\1"), (r"by an operator \(\w+\)", "by an operator (WHO)"), (r"\b[0-9A-F]{18,}\b", "ID"),
          (r"(?<![\w.])/\S+", "PATH"),
          (r"message-id=<\S+>", "MESSAGE-ID"), (r"\b[A-Z][a-z]{2},? (\w+ ){1,3}\d\d:\d\d:\d\d( \+\d+)?", "TIME"),
          (r"\d+(\.\d+)?", "N"), (r"\bN[smhd]\b", "N"), (r"\s+", " "))


def plain(line):
    for pattern, word in VARIES:
        line = re.sub(pattern, word, line)
    return line.strip()


def blocks(text):
    """[(command, lines that stand below it)] of the page, in its order."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


class Page(SystemTest):
    @cost(20)
    def test_each_command_prints_what_the_page_says(self):
        world = World()
        self.addCleanup(world.i.destroy)
        self.addCleanup(self.show_log, world.i)
        told = blocks(PAGE.read_text())
        self.assertGreater(len(told), 20)
        for command, lines in told:
            with self.subTest(command):
                done = world.shell(command)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                got = {plain(line) for line in (done.stdout + done.stderr).splitlines()}
                self.assertEqual([line for line in lines if plain(line) not in got], [], done.stdout + done.stderr)

    def test_what_the_text_names_is_there(self):
        """Verbs and options of qctl and setqload between backticks, links, parameters."""
        text = PAGE.read_text()
        helped = {name: subprocess.run([BIN / name, "--help"], capture_output=True, text=True, check=True).stdout
                  for name in ("qctl", "setqload", "qtop")}
        for name, words in re.findall(r"`(qctl|setqload|qtop) ([^`]*)`", text):
            for word in words.split()[:1] + re.findall(r"(?<!\S)--?[a-z-]+", words):
                self.assertRegex(helped[name], rf"(?<![\w-]){re.escape(word)}\b", f"{name} {words}")
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            self.assertTrue((PAGE.parent / link).exists(), link)
        heads = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^## (.*)$", text, re.M)}
        self.assertEqual([anchor for anchor in re.findall(r"\]\(#([^)]+)\)", text) if anchor not in heads], [])
        known = (ROOT / "common/config/param.def").read_text()
        for name in re.findall(r"`([a-z]+_[a-z_]+)`", text):
            self.assertRegex(known.replace("default_destination", "smtp_destination"), rf"\b{name}\b")

    def test_texts_that_are_quoted_are_those_of_the_programs(self):
        """mutation: a word of a quoted text is another one."""
        source = "".join(path.read_text() for folder in PROGRAMS for path in sorted((ROOT / folder).rglob("*.*"))
                         if path.suffix in (".c", ".h", ".def"))
        source = re.sub(r'"\s*(PRI\w+|[A-Z_]+)\s*"', "%", source)
        source = re.sub(r'"\s*"', "", source).replace('\\"', '"')
        source = re.sub(r"%[-.*0-9a-z]*[a-zA-Z]?", "%", source)
        text = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.S)
        for quoted in re.findall(r"`([^`\n]+)`", text):
            if quoted.split()[0] in COMMANDS or quoted in COMPOSED:
                continue
            for part in re.split(r"[0-9]+|\b[A-Z]{2,}\b|…|\.\.\.", quoted):
                if " " in part.strip():
                    self.assertTrue(part.strip() in source, quoted)
