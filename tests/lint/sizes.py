#!/usr/bin/env python3
"""Refuse what has grown too large: functions above 80 code lines, main() above
40, files above 500 lines, more than seven parameters. Relies on the format
that clang-format gives: a function's name and its braces stand at column 0."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = re.compile(r"^([a-z_]\w*)\(")


def strip(text):
    """Comments gone, their line ends kept."""
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)


def functions(text):
    name, start, head = None, None, ""
    for number, line in enumerate(strip(text).splitlines(), 1):
        found = NAME.match(line)
        if found:
            name, start, head = found.group(1), None, ""
        if name and start is None:
            head += line
            if line.startswith("{"):
                start, lines = number, 0
            elif line.rstrip().endswith(";"):
                name = None
        elif name and line.startswith("}"):
            yield name, start, lines, head.count(",") + 1
            name = None
        elif name and line.strip():
            lines += 1


def main():
    names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*.[ch]")
             if "build" not in p.relative_to(ROOT).parts]
    bad = 0
    for name in sorted(names):
        path = ROOT / name
        text = path.read_text()
        if text.count("\n") > 500:
            print(f"{name}: {text.count(chr(10))} lines; 500 at most")
            bad += 1
        if path.suffix != ".c":
            continue
        for function, line, lines, params in functions(text):
            limit = 40 if function == "main" else 80
            if lines > limit:
                print(f"{name}:{line}: {function}() has {lines} code lines; {limit} at most")
                bad += 1
            if params > 7 and not name.startswith("tests/"):
                print(f"{name}:{line}: {function}() has {params} parameters; 7 at most")
                bad += 1
    return 1 if bad else 0


sys.exit(main())
