#!/usr/bin/env python3
"""Compare the exit codes in the manual pages with those in the sources. What the
programs say themselves (--help) is compared by tests/system/test_manuals.py.

    manuals.py            exit 1 if refused
    manuals.py --control  the lint refuses what it has to refuse"""
import os
import re
import shutil
import sys

import tree

# A page, the folders or files whose codes it tells, and codes that stand there
# as bare numbers.
DAEMON = ("common/daemon",)
PAGES = {
    "qctl.8": (("qctl",), ()), "setqload.8": (("setqload",), ()), "qtop.8": (("qtop",), ()),
    "queue-drop.8": (("queue-drop",), ()), "queue-inject.1": (("queue-inject",), ()),
    "qsim.1": (("qsim",), (0, 1)), "qscheduler.8": (("qscheduler",), (0,)),
    "queue-send.8": (DAEMON, (0,)), "todo-proc.8": (DAEMON, (0,)),
    "deliver-local.8": (DAEMON, (0,)), "deliver-smtp.8": (DAEMON, (0,)),
}
OURS = {"EXIT_PERMANENT": 100, "EXIT_TEMPORARY": 111}
CODE = re.compile(r"\b(EX_[A-Z]+|EXIT_PERMANENT|EXIT_TEMPORARY)\b")
REFUSAL = re.compile(r"\[REFUSAL_\w+\]\s*=\s*\{\s*\w+,\s*(\d+),")


def in_source(root, rooms):
    """The codes of these rooms; code that reads the status of a child counts,
    too, since a code that a child may have is one of the page."""
    found = set()
    for room in rooms:
        for path in sorted((root / room).rglob("*.c")):
            for name in CODE.findall(path.read_text()):
                found.add(OURS[name] if name in OURS else getattr(os, name))
    return found


def in_page(text):
    part = re.search(r"^\.Sh EXIT STATUS\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)
    return {int(code) for code in re.findall(r"^\.It (\d+)$", part.group(1), re.M)} if part else set()


def compare(page, told, used):
    wrong = [f"etc/man/{page}: exit code {code} is missing" for code in sorted(used - told)]
    return wrong + [f"etc/man/{page}: no source has exit code {code}" for code in sorted(told - used)]


def check(root, pages=None):
    wrong = []
    for page, (rooms, more) in (pages or PAGES).items():
        told = in_page((root / "etc/man" / page).read_text())
        wrong += compare(page, told, in_source(root, rooms) | set(more))
    table = (root / "queue-inject/refusal.c").read_text()
    wrong += compare("qmail-queue.8", in_page((root / "etc/man/qmail-queue.8").read_text()),
                     {int(code) for code in REFUSAL.findall(table)})
    for line in wrong:
        print(line)
    return len(wrong)


def control():
    page = ".Sh EXIT STATUS\n.It 0\n.It 64\n.It 100\n.Sh SEE ALSO\n.It 75\n"
    root = tree.plant({
        "Makefile": "PROGRAMS := p\n", "etc/man/p.8": page,
        "p/main.c": "return EX_USAGE;\nreturn EXIT_TEMPORARY;\nEX_OK\n",
        "queue-inject/refusal.c": "[REFUSAL_READ] = { EX_IOERR, 54, x }\n",
        "etc/man/qmail-queue.8": ".Sh EXIT STATUS\n.It 53\n"})
    bad = check(root, {"p.8": (("p",), ())})
    (root / "etc/man/p.8").write_text(page.replace("100", "111"))
    (root / "etc/man/qmail-queue.8").write_text(".Sh EXIT STATUS\n.It 54\n")
    good = check(root, {"p.8": (("p",), ())})
    shutil.rmtree(root)
    # 111 is missing, 100 has no source; 54 is missing, 53 has none
    return [f"{bad} refused, not 4; {good} of good pages"] if (bad, good) != (4, 0) else []


if __name__ == "__main__":
    sys.exit(tree.run(check, control))
