#!/usr/bin/python3
"""Run the system tests: run.py [-j N] [--as-root | --as-user] [--exact] [PATTERN…]

Each test (a method of a class in test_*.py) runs in a process of its own,
several at once, and leaves nothing behind. Started as root the whole set is
run twice: as root, and as an ordinary user from a copy that one can read.
What cannot run here says why, and is counted. A test that fails is named with
the command that runs it alone (tests/check/parts.sh).
"""
import argparse
import concurrent.futures
import os
import pathlib
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT = 1200  # above those of the tests themselves, which name the place (case.py)
BINARIES = pathlib.Path(os.environ.get("QSCHED_BIN", ROOT / "build/bin")).resolve()
# The programs that a command for the caller names: BINARIES may be a copy.
BINARIES_NAMED = os.environ.get("QSCHED_BIN_NAMED", str(BINARIES))


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def listed(patterns, exact):
    sys.path.insert(0, str(HERE))
    tests = list(flatten(unittest.defaultTestLoader.discover(str(HERE), "test_*.py")))
    broken = [t for t in tests if type(t).__name__ == "_FailedTest"]
    if broken:
        sys.exit(f"cannot load: {broken[0]._exception}")
    # The long ones first, so that the last to end is a short one.
    tests.sort(key=lambda t: -getattr(getattr(t, t._testMethodName), "cost", 0))
    names = [t.id() for t in tests]
    return [n for n in names if not patterns or any(p == n if exact else p in n for p in patterns)]


def told(text):
    """One line of each failure that unittest tells: place and assertion."""
    rule = r"(?:=|-){70}$"
    for block in re.findall(rf"^(?:FAIL|ERROR): (?:[^\n]*\n)+?-{{70}}\n(.*?)^{rule}", text, re.M | re.S):
        trace = block.rsplit("Traceback (most recent call last):\n", 1)[-1]
        places = re.findall(r'^  File ".*?([^/"]+)", line (\d+)', trace, re.M)
        place = next((p for p in reversed(places) if p[0].startswith("test_")), ("?", "?"))
        words = " ".join(re.sub(r"\A(?: .*\n)*", "", trace).split())
        yield f"{':'.join(place)}: {words if len(words) < 600 else words[:400] + ' ... ' + words[-180:]}"


def last_words(text):
    return list(told(text)) or [line for line in text.splitlines() if line.strip()][-1:] or ["no words"]


def run_one(name):
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-v", name], cwd=HERE,
                              text=True, capture_output=True, check=False, timeout=LIMIT,
                              errors="replace")
        # What instances logged comes before what failed.
        text, status = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        text, status = f"no end within {LIMIT} s\n", 1
    word = "FAILED" if status else "skipped" if re.search(r"skipped=\d", text) else "ok"
    return name, word, text, time.monotonic() - began


def command_for(name, who):
    """The command that runs one test alone, from the top directory."""
    return shlex.join(["env", f"QSCHED_BIN={BINARIES_NAMED}", sys.executable, "-B", "tests/system/run.py",
                       "-j", "1", f"--as-{who}", "--exact", name])


def run_all(names, jobs, who):
    count = {"ok": 0, "FAILED": 0, "skipped": 0}
    failures = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(run_one, n) for n in names]
        for done in concurrent.futures.as_completed(running):
            name, word, text, took = done.result()
            count[word] += 1
            why = re.search(r"skipped (['\"].*)", text) if word == "skipped" else None
            print(f"system: {who}: {name}: {word} {why.group(1) if why else ''}({took:.1f} s)", flush=True)
            if word == "FAILED":
                words = last_words(text)
                lines = [f"system: {who}: {name}: FAILED: {line}" for line in words]
                failures += lines
                lines.append(f"FAILED\t{who}: {name}\t{command_for(name, who)}\t" + " ".join(words[0].split()))
                print(text, *lines, sep="\n", flush=True)
    for line in failures:
        print(line, flush=True)
    return count


def as_user(options):
    """The same tests by an ordinary user, from a copy that it can read."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # the copy goes
    user = pwd.getpwnam("nobody")
    top = pathlib.Path(tempfile.mkdtemp(prefix="qsched-user-"))
    try:
        shutil.copytree(BINARIES, top / "build/bin", symlinks=True)
        for folder in ("etc", "docs", "common/config"):
            shutil.copytree(ROOT / folder, top / folder)
        shutil.copy(ROOT / "README.md", top)
        shutil.copytree(ROOT / "tests", top / "tests", symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["chmod", "-R", "a+rX", top], check=True)
        scratch = top / "tmp"
        scratch.mkdir()
        scratch.chmod(0o755)
        shutil.chown(scratch, user.pw_uid, user.pw_gid)
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(scratch), "HOME": str(scratch),
                       "QSCHED_BIN_NAMED": BINARIES_NAMED}
        command = [sys.executable, "-B", top / "tests/system/run.py", "-j", str(options.jobs)]
        command += ["--exact"] * options.exact
        done = subprocess.run([*command, *options.patterns], check=False, user=user.pw_uid,
                              group=user.pw_gid, extra_groups=[], env=environment, cwd=top)
        return done.returncode
    finally:
        shutil.rmtree(top, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", dest="jobs", type=int, default=5)
    parser.add_argument("--as-user", action="store_true", help="only as an ordinary user (needs root)")
    parser.add_argument("--as-root", action="store_true", help="only as root")
    parser.add_argument("--exact", action="store_true", help="patterns are whole names of tests")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    root = os.geteuid() == 0
    status = 0
    if not (root and options.as_user):
        names = listed(options.patterns, options.exact)
        who = "root" if root else "user"
        count = run_all(names, options.jobs, who)
        print(f"system: {who}: {count['ok']} passed, {count['FAILED']} failed, "
              f"{count['skipped']} skipped", flush=True)
        status |= count["FAILED"] > 0 or not names
    if root and not options.as_root:
        status |= as_user(options)
    return int(status)


sys.exit(main())
