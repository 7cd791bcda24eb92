#!/usr/bin/env python3
"""make mutants: does each row's test fail when its code is broken?

Reads tests/mutants/list-*: for each row of the fault catalogue one small
change to the code (exact text, replacement) and the test that must then fail.
Each change is made in a copy of the tree, alone; what is needed is built, the
test runs. A survivor is a test that does not show what its name says.

--check, which is part of `make lint`, builds nothing: each text stands exactly
once in its file, the test that must fail exists, and each row that a test names
has a change or a reason. --control: --check refuses what it has to refuse, and
a test that hangs ends. --list FILE: the changes of a file of your own."""
import argparse
import concurrent.futures
import fnmatch
import functools
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build/mutants"
TEST_LIMIT = 600  # seconds: a change that makes the test hang is caught as well
OVER_LIMIT = 124  # exit code of within.py


class Wrong(Exception):
    """The list does not fit the tree."""


class Mutation:
    def __init__(self, where, rows):
        self.where, self.rows = where, rows
        self.file, self.old, self.new, self.test = "", [], [], []
        self.why = ""  # instead of all that: no mutation, for this reason

    def name(self):
        return " ".join(self.rows) + f" ({self.where})"

    def apply(self, tree):
        path = tree / self.file
        text = path.read_text()
        old, new = "\n".join(self.old), "\n".join(self.new)
        if text.count(old) != 1:
            raise Wrong(f"{self.where}: {self.file} has the text "
                        f"{text.count(old)} times")
        path.write_text(text.replace(old, new))
        return text


def parse(path):
    """Records: `row ID...`, then `file`, lines of `-` and `+`, `test`; or
    `row ID...` and `none REASON`. `#` comments, empty lines separate."""
    found = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        word, _, rest = line.partition(" ")
        if line[:1] in ("", "#"):
            continue
        if word == "row":
            found.append(Mutation(f"{path.name}:{number}", rest.split()))
        elif not found:
            raise Wrong(f"{path.name}:{number}: no row yet")
        elif line[0] == "-":
            found[-1].old.append(line[1:])
        elif line[0] == "+":
            found[-1].new.append(line[1:])
        elif word == "file":
            found[-1].file = rest
        elif word == "test":
            found[-1].test = rest.split()
        elif word == "none":
            found[-1].why = rest
        else:
            raise Wrong(f"{path.name}:{number}: {word}?")
    return found


def read_list():
    return [m for path in sorted((ROOT / "tests/mutants").glob("list-*"))
            for m in parse(path)]


# ---- the check of the list -------------------------------------------------

def alternatives(pattern):
    """The patterns that Criterion's @(a|b) stands for."""
    found = re.search(r"@\(([^()]*)\)", pattern)
    if not found:
        return [pattern]
    return [one for part in found[1].split("|")
            for one in alternatives(pattern[:found.start()] + part + pattern[found.end():])]


@functools.lru_cache(None)
def unit_tests(root, folder):
    text = "\n".join(p.read_text() for p in (root / "tests/unit" / folder).glob("*.c"))
    return ["/".join(names) for names in re.findall(r"\bTest\(\s*(\w+),\s*(\w+)", text)]


@functools.lru_cache(None)
def system_tests(root):
    """As tests/system/run.py names them: MODULE.CLASS.TEST."""
    found = []
    for path in (root / "tests/system").glob("test_*.py"):
        name = ""
        for line in path.read_text().split("\n"):
            word = re.match(r"class (\w+)|    def (test_\w+)", line)
            name = word[1] if word and word[1] else name
            if word and word[2]:
                found.append(f"{path.stem}.{name}.{word[2]}")
    return found


def missing_tests(root, test):
    """The patterns that no test fits: nothing would be asked there."""
    kind, *rest = test
    if kind == "unit" and len(rest) == 2:
        names = unit_tests(root, rest[0])
        return [p for p in alternatives(rest[1]) if not fnmatch.filter(names, p)]
    if kind == "system":
        names = system_tests(root)
        patterns = [p for p in rest if not p.startswith("--")]
        return [p for p in patterns if not any(p in name for name in names)] \
            if patterns else ["?"]
    return test


def judge(root, m):
    if m.why:
        return
    if not (m.file and m.old and m.test):
        raise Wrong(f"{m.where}: file, text or test is missing")
    text = (root / m.file).read_text()
    count = text.count("\n".join(m.old))
    if count != 1:
        raise Wrong(f"{m.where}: {m.file} has the text {count} times")
    if m.old == m.new:
        raise Wrong(f"{m.where}: changes nothing")
    missing = missing_tests(root, m.test)
    if missing:
        raise Wrong(f"{m.where}: no test {' '.join(missing)} in `{' '.join(m.test)}'")


def promised(root):
    page = (root / "docs/FAULTS.md").read_text().partition("\n## Not covered")[0]
    return re.findall(r"^\| ([A-Z]\d+|attack_\d+) \|", page, re.M)


def check(root, mutations):
    bad = []
    for m in mutations:
        try:
            judge(root, m)
        except (Wrong, OSError) as error:
            bad.append(str(error))
    rows = {row for m in mutations for row in m.rows}
    missing = [row for row in promised(root) if row not in rows]
    if missing:
        bad.append("no mutation for the row: " + " ".join(missing))
    return bad


CONTROL = {
    "docs/FAULTS.md": "| D1 | f |\n| D2 | f |\n",
    "a.c": "one\ntwo\ntwo\n",
    "tests/unit/common/a.c": "Test(s, D1_a)\nTest(\n    s, D1_b)\n",
    "tests/system/test_a.py": "class A(Case):\n    def test_D1_c(self):\n",
    "list": """
row D1
file a.c
-one
+1
test unit common s/D1_*

row D1
file a.c
-one
+1
test unit common @(s/D1_a|s/D1_b)

row D1
file a.c
-one
+1
test system --as-root A.test_D1

row D1 of a text that stands twice
file a.c
-two
+2
test unit common s/D1_*

row D1 of a change that changes nothing
file a.c
-one
+one
test unit common s/D1_*

row D1 of a test that is gone
file a.c
-one
+1
test unit common s/D1_c

row D1 of an alternative that is gone
file a.c
-one
+1
test unit common @(s/D1_a|s/D1_c)

row D1 of a folder that is gone
file a.c
-one
+1
test unit commons s/D1_*

row D1 of a system test that is gone
file a.c
-one
+1
test system --as-root test_D2

row D1 of a kind that is unknown
file a.c
-one
+1
test make check
""",
}


def control():
    """Seven changes that are refused, and D2, for which there is none."""
    with tempfile.TemporaryDirectory() as top:
        root = pathlib.Path(top)
        for name, text in CONTROL.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        bad = check(root, parse(root / "list"))
    if len(bad) != 8:
        return [f"{len(bad)} refused, not 8", *bad]
    began = time.monotonic()
    done = within(1, ["sh", "-c", "setsid sleep 60 & setsid sleep 60"])
    took = time.monotonic() - began
    if done.returncode != OVER_LIMIT or took > 30:
        return [f"what hangs ends after {took:.0f} s with {done.returncode}"]
    return []


# ---- running them ----------------------------------------------------------

def copy_tree(number):
    """The files of git and what is built, with their times."""
    tree = WORK / str(number)
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                           stdout=subprocess.PIPE).stdout
    subprocess.run(["cp", "-a", "--parents", *files.decode().split("\0")[:-1],
                    str(tree)], cwd=ROOT, check=True)
    for built in ("gcc", "bin", "man", "etc"):
        if (ROOT / "build" / built).exists():
            (tree / "build").mkdir(exist_ok=True)
            subprocess.run(["cp", "-a", str(ROOT / "build" / built),
                            str(tree / "build")], check=True)
    return tree


def commands(test):
    """The target to build, and the command to run, which must fail."""
    kind, *rest = test
    make = ["make", "-j2", "WARN=-w"]
    if kind == "unit":
        return ([*make, f"build/gcc/unit/{rest[0]}"],
                [f"build/gcc/unit/{rest[0]}", "-j2", "--filter", rest[1]])
    if kind == "system":
        return ([*make, "all"],
                ["/usr/bin/python3", "-B", "tests/system/run.py", "-j", "1",
                 *rest])
    raise Wrong(f"{kind}: unknown test")


def has_run(kind, output):
    """A filter that fits nothing passes: then no test was asked."""
    if kind == "unit":
        tested = re.search(r"Tested: .*?(\d+)",
                           re.sub(r"\x1b\[[0-9;]*m", "", output))
        return tested is not None and int(tested[1]) > 0
    counts = re.findall(r"(\d+) passed, (\d+) failed", output)
    return any(int(n) > 0 for pair in counts for n in pair)


def within(limit, command, **options):
    """Runs a command; all its processes end with it, or after the limit."""
    return subprocess.run([sys.executable, ROOT / "tests/mutants/within.py",
                           str(limit), *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **options)


def try_one(m, tree, limit):
    """'killed', perhaps with the way, 'SURVIVED', or what else went wrong."""
    build, test = commands(m.test)
    before = m.apply(tree)
    env = {**os.environ, "QSCHED_BIN": str(tree / "build/bin")}
    try:
        made = subprocess.run(build, cwd=tree, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=env)
        if made.returncode != 0:
            return "DOES NOT BUILD\n" + made.stdout[-1500:]
        done = within(limit, test, cwd=tree, env=env)
        if done.returncode == OVER_LIMIT:
            return f"killed: no end within {limit:.0f} s"
        if not has_run(m.test[0], done.stdout):
            return "NO TEST HAS RUN\n" + done.stdout[-1500:]
        return "SURVIVED" if done.returncode == 0 else "killed"
    finally:
        (tree / m.file).write_text(before)


def run(mutations, jobs, limit):
    trees = queue.Queue()
    for number in range(jobs):
        trees.put(copy_tree(number))
    results = []

    def work(m):
        tree = trees.get()
        began = time.monotonic()
        try:
            result = try_one(m, tree, limit)
        except (Wrong, OSError) as error:
            result = str(error)
        finally:
            trees.put(tree)
        print(f"mutants: {m.name()}: {result} "
              f"({time.monotonic() - began:.0f} s)", flush=True)
        results.append((m, result))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, mutations))
    shutil.rmtree(WORK, ignore_errors=True)
    return [(m, r) for m, r in results if not r.startswith("killed")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=TEST_LIMIT,
                        help="seconds that the test of a change has")
    parser.add_argument("--list", type=pathlib.Path,
                        help="changes of this file, not of list-*")
    parser.add_argument("rows", nargs="*", help="only these rows or files")
    args = parser.parse_args()
    mutations = parse(args.list) if args.list else read_list()
    if args.check or args.control:
        bad = check(ROOT, mutations) if args.check else control()
        print("\n".join(bad) if bad else f"{len(mutations)} mutations apply")
        sys.exit(bool(bad))
    chosen = [m for m in mutations if not m.why and
              (not args.rows or set(args.rows) & {*m.rows, m.file,
                                                  m.where.split(":")[0]})]
    left = run(chosen, args.jobs, args.timeout)
    for m in mutations:
        if m.why and not args.rows:
            print(f"mutants: {m.name()}: none: {m.why}")
    print(f"mutants: {len(chosen)} applied, {len(left)} not caught"
          + "".join("\n  " + m.name() for m, _ in left))
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
