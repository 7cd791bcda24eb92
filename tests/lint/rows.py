#!/usr/bin/env python3
"""Compare docs/FAULTS.md with the tests, in both directions.

Each row of its tables stands in the name of a test (D7 in Test(accept, D7_…)
or def test_D7_…) of each file that the row names, and each row that a test
carries stands there. Rows under "Not covered" are carried by no test. Numbers
of a letter have no holes. references.py does the same for comments.

    rows.py            exit 1 if refused
    rows.py --write    puts other tests into rows whose tests have moved
    rows.py --control  the lint refuses what it has to refuse"""
import re
import shutil
import sys

import tree

NAME = re.compile(r"Test\(\s*\w+,\s*(\w+)|def test_(\w+)")
DISK = re.compile(r'"(?:\w+: )?([A-Z]\d+) ')
ID = re.compile(r"(?:^|_)([DIPNSCFAXT]\d{1,2}|attack_\d+)(?=_|$)")
CELL = re.compile(r"^\| ((?:[A-Z]\d+|attack_\d+)(?:, [A-Z]\d+)*) \|(.*)\|$", re.M)


def carried(root):
    """{row: test files that carry it}"""
    found = {}
    tests = root / "tests"
    for path in [*tests.rglob("*.c"), *tests.rglob("test_*.py")]:
        text = path.read_text()
        rows = [row for groups in NAME.findall(text) for row in ID.findall("".join(groups))]
        if path.parent.name == "disk":
            rows += DISK.findall(text)
        for row in rows:
            found.setdefault(row, set()).add(str(path.relative_to(tests)))
    return found


def read_page(root):
    """({row: test files it names}, rows under "Not covered", rows said twice)"""
    text = (root / "docs/FAULTS.md").read_text()
    promised, _, absent = text.partition("\n## Not covered\n")
    rows, twice = {}, []
    for ids, rest in CELL.findall(promised):
        twice += [ids] if ids in rows else []
        rows[ids] = re.findall(r"`((?:unit|system|disk|storm)/[^`]+)`", rest)
    return rows, {row for ids, _ in CELL.findall(absent) for row in ids.split(", ")}, twice


def check(root):
    has = carried(root)
    rows, absent, twice = read_page(root)
    wrong = [f"{row}: twice" for row in twice]
    for row, files in rows.items():
        if row not in has:
            wrong.append(f"{row}: no test carries it")
        elif not files:
            wrong.append(f"{row}: it names no test; {', '.join(sorted(has[row]))} carry it")
        wrong += [f"{row}: tests/{name} has no test of it; {', '.join(sorted(has[row]))} have"
                  for name in files if row in has and name not in has[row]]
    for row, files in has.items():
        if row in absent:
            wrong.append(f"{row}: said not to be covered, and {min(files)} carries it")
        elif row not in rows:
            wrong.append(f"{row}: {min(files)} carries it, and it has no row")
    known = rows.keys() | absent
    for kind in {re.sub(r"\d+$", "", row) for row in known}:
        numbers = {int(row[len(kind):]) for row in known if re.sub(r"\d+$", "", row) == kind}
        wrong += [f"{kind}{n}: a hole in the numbers" for n in range(1, max(numbers))
                  if n not in numbers]
    for line in wrong:
        print(f"docs/FAULTS.md: {line}")
    return len(wrong)


def choose(files):
    """At most three tests of a row: whole instances first."""
    whole = sorted(name for name in files if not name.startswith("unit/"))[:2]
    units = sorted(name for name in files if name.startswith("unit/"))
    return whole + units[:3 - len(whole)]


def write(root):
    page, has = root / "docs/FAULTS.md", carried(root)
    lines = page.read_text().split("\n")
    for i, line in enumerate(lines):
        row = CELL.match(line)
        names = re.findall(r"`((?:unit|system|disk|storm)/[^`]+)`", line)
        files = has.get(row.group(1), set()) if row else set()
        if files and (not names or not files.issuperset(names)):
            head = line[:line.index("`" + names[0])] if names else line
            kept = [name for name in names if name in files] or choose(files)
            lines[i] = head + ", ".join(f"`{name}`" for name in kept) + " |"
    page.write_text("\n".join(lines))


def control():
    page = ("| row | fault | promise | tests |\n| D1 | f | p | `unit/a.c` |\n"
            "| D2 | f | p | `unit/a.c` |\n| D4 | f | p |\n\n## Not covered\n| D5 | why |\n")
    tests = "Test(a, D1_x)\nTest(a, D4_y)\nTest(a, D5_z)\nTest(a, D6_z)\n"
    root = tree.plant({"docs/FAULTS.md": page, "tests/unit/a.c": tests})
    found = check(root)
    (root / "docs/FAULTS.md").write_text("| D1 | f | p | `unit/a.c` |\n| D2 | f | `unit/a.c` |\n")
    (root / "tests/unit/a.c").write_text("Test(a, D1_D2_x)\n")
    good = check(root)
    shutil.rmtree(root)
    # D2 without a test, D3 a hole, D4 without a file, D5 covered, D6 without a row
    return [f"{found} refused, not 5; {good} of a good page"] if (found, good) != (5, 0) else []


if __name__ == "__main__":
    if "--write" in sys.argv:
        write(tree.ROOT)
    sys.exit(tree.run(check, control))
