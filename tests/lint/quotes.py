#!/usr/bin/env python3
"""Refuse a text of the programs that docs/WHEN-MAIL-WAITS.md quotes, and that no
program has.

    quotes.py            exit 1 if refused
    quotes.py --control  the lint refuses what it has to refuse"""
import re
import sys

import tree

PAGE = "docs/WHEN-MAIL-WAITS.md"
PROGRAMS = ("common", "qctl", "qscheduler", "setqload", "qtop", "queue-send", "queue-inject", "todo-proc",
            "deliver-local", "deliver-smtp")
COMMANDS = ("qctl", "setqload", "grep", "find", "du", "df", "echo", "systemctl", "qtop", "dmesg", "iostat", "sendmail",
            "postsuper", "journalctl", "qscheduler", "newaliases")
# Texts that are put together from parts, or that are not of our programs.
COMPOSED = (
    "smtp_host_lookup = native", "unable to get local issuer certificate", "relay=alias … 1 recipient as ID",
    "status=sent (delivered to maildir)", "host.example.com local", "open, disk late for 12 s (a move waits)",
    "late: a move has waited for the disk for 1s",
    "not enough room in /dev/shm", "not enough room in /dev/shm: 65000 of 65536 KB and 0 of 200 inodes are free",
    "Damaged: content checksum differs from the one stored at acceptance. It is not delivered.",
    "disabled, for a fault: its disk does not answer", "disabled, for a fault")
# A number, a word in capitals and "..." stand for something else.
VARIES = re.compile(r"[0-9]+|\b[A-Z]{2,}\b|…|\.\.\.")


def plain(source):
    """The strings of C with % for what is printed into them."""
    source = re.sub(r'"\s*(PRI\w+|[A-Z_]+)\s*"', "%", source)
    source = re.sub(r'"\s*"', "", source).replace('\\"', '"')
    return re.sub(r"%[-.*0-9a-z]*[a-zA-Z]?", "%", source)


def missing(page, source):
    """The quoted texts that have a part of several words which the source does not have."""
    text = re.sub(r"```.*?```", "", page, flags=re.S)
    quoted = [q for q in re.findall(r"`([^`\n]+)`", text) if q.split()[0] not in COMMANDS and q not in COMPOSED]
    return [q for q in quoted
            if any(" " in part.strip() and part.strip() not in source for part in VARIES.split(q))]


def check(root):
    source = plain("".join(path.read_text() for folder in PROGRAMS for path in sorted((root / folder).rglob("*.*"))
                           if path.suffix in (".c", ".h", ".def")))
    wrong = missing((root / PAGE).read_text(), source)
    for quoted in wrong:
        print(f"{PAGE}: no program says: {quoted}")
    return len(wrong)


def control():
    source = plain('f("disk late for %" PRId64 " s (%s)",\n    n); g("no such "\n  "queue");')
    good = "`disk late for 12 s`, `no such queue`, `qctl no such command`\n```\n`not quoted at all`\n```\n"
    bad = ["disk is late for 12 s", "no such queues here"]
    wrong = [f"{q}: refused" for q in missing(good, source)]
    return wrong + [f"{q}: not refused" for q in bad if missing(f"`{q}`", source) != [q]]


if __name__ == "__main__":
    sys.exit(tree.run(check, control))
