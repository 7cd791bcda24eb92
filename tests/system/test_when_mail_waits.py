"""docs/WHEN-MAIL-WAITS.md: each command runs, and prints what stands there."""
import re
import subprocess

from case import SystemTest, cost
from instance import BIN, ROOT
from page_world import World

PAGE = ROOT / "docs/WHEN-MAIL-WAITS.md"
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
