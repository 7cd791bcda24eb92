#!/usr/bin/env python3
"""Compare the events of the log in the code with qscheduler-log(5).

Each event and field stands in the page, each event of the page in the code,
and each source with lines of text has a row in common/log/events.c.

    events.py            exit 1 if refused
    events.py --control  the lint refuses what it has to refuse"""
import re
import shutil
import sys

import tree

PAGE = "etc/man/qscheduler-log.5"
TABLE = "common/log/events.c"
TEXT = re.compile(r"\blog_(?:debug|info|warning|error)\(")
ROW = re.compile(r'\{ "([^"]+\.c)", "([^"]+)" \}')
EVENT = re.compile(r'log_message\(\s*\w+,\s*"([^"]+)"'
                   r'|\b(?:say\((?:[mt]|id), \w+|schedule_log_write\(\s*\w+),\s*"([^"]+)"')
NAMED = re.compile(r'struct log_event \w+ = \{[^;]*?\.name = "([^"]+)"', re.S)
FIELD = re.compile(r'\bLOG_(?:STR|ADDR|INT|TIME|DECIMALS?)\("([^"]+)"')
MEMBERS = re.compile(r'LOG_DECIMALS\("[^"]+", \w+, "([^"]+)"')


def check(root):
    page = (root / PAGE).read_text()
    table = dict(ROW.findall((root / TABLE).read_text()))
    told = set(re.findall(r"^\.It Cm (\S+)$", page, re.M))
    words = set(re.findall(r"^\.Cm (\S+)", page, re.M))
    speaks, events, fields = set(), set(table.values()) | {"note"}, set()
    for path in tree.product(root, (".c",)):
        text = path.read_text()
        if TEXT.search(text):
            speaks.add(str(path.relative_to(root)))
        events |= {a or b for a, b in EVENT.findall(text)} | set(NAMED.findall(text))
        fields |= set(FIELD.findall(text))
        fields |= {m for group in MEMBERS.findall(text) for m in group.split("/")}
    wrong = [f"{TABLE}: no row for {name}" for name in sorted(speaks - set(table))]
    wrong += [f"{TABLE}: {name} has no line of text" for name in sorted(set(table) - speaks)]
    wrong += [f"{PAGE}: event {name} is missing" for name in sorted(events - told)]
    wrong += [f"{PAGE}: no code has the event {name}" for name in sorted(told - events)]
    wrong += [f"{PAGE}: field {name} is missing" for name in sorted(fields - words)]
    for line in wrong:
        print(line)
    return len(wrong)


def control():
    code = ('log_info("x");\nlog_message(LOG_INFO_L, "gone", id, "x");\n'
            'LOG_INT("size", 1), LOG_DECIMALS("delays", d, "a/b")\n')
    table = '{ "common/log/x.c", "b" }, { "common/log/none.c", "b" }'
    root = tree.plant({"Makefile": "PROGRAMS := p\n", "common/log/x.c": code,
                       "common/log/y.c": "log_error(1);\n", TABLE: table,
                       PAGE: ".It Cm other\n.It Cm note\n.Cm delays\n.Cm a\n"})
    found = check(root)
    (root / "common/log/y.c").unlink()
    (root / TABLE).write_text('{ "common/log/x.c", "b" }')
    (root / PAGE).write_text("".join(f".It Cm {e}\n" for e in ("b", "note", "gone"))
                             + "".join(f".Cm {f}\n" for f in ("size", "delays", "a", "b")))
    good = check(root)
    shutil.rmtree(root)
    # no row for y, none.c unused, gone and b missing, other unknown, size and b missing
    return [f"{found} refused, not 7; {good} of a good page"] if (found, good) != (7, 0) else []


if __name__ == "__main__":
    sys.exit(tree.run(check, control))
