#!/usr/bin/env python3
"""Refuse a call against PROGRAM/LAYERS, and a circle of a program's folders.

The arrows are those of circles.py, summed up by folder: folder a points to
folder b if an object of a lacks a symbol that one of b defines. Files of a
program that are in no folder stand above all of them, as the folder `.`. A
floor that calls up through a struct of functions makes no arrow.

    floors.py                 the calls between folders; exit 1 if refused
    floors.py PROGRAM...      each call of these programs, with its symbols
    floors.py --objects DIR   the objects of another variant than build/gcc
    floors.py --control       the lint refuses what it has to refuse

layers.py does the same for #include."""
import argparse
import contextlib
import pathlib
import shutil
import subprocess
import sys

import circles
import layers
import tree


def folder_of(source):
    """PROGRAM/folder/…/file.c: folder; PROGRAM/file.c: `.`"""
    parts = source.split("/")
    return parts[1] if len(parts) > 2 else "."


def calls(graph):
    """{folder: {folder: [(source, target, symbols)]}}"""
    found = {folder_of(source): {} for source in graph}
    for source, targets in graph.items():
        for target, names in sorted(targets.items()):
            a, b = folder_of(source), folder_of(target)
            if a != b:
                found[a].setdefault(b, []).append((source, target, names))
    return found


def tell(rows):
    for source, target, names in rows:
        print(f"    {source} -> {target}: {', '.join(names)}")


def check_program(root, name, built, wanted):
    """Prints the calls, and what is refused; returns how much that is."""
    found = circles.objects(root, root / name, built)
    old = circles.stale(root, found)
    if old:
        print(f"{old[0]}: no object of it in {built}, or an older one: make all")
        return 1
    between = calls(circles.arrows(found))
    folders = set(between) - {"."}
    if not folders:
        return 0
    bad = 0
    for a, targets in sorted(between.items()):
        count = ", ".join(f"{b} {len({s for row in rows for s in row[2]})}"
                          for b, rows in sorted(targets.items()))
        print(f"{name}: {a} -> {count or 'nothing'}")
        for rows in targets.values() if name in wanted else ():
            tell(rows)
    floors = layers.read_floors(root, name)
    if set(floors) != folders:
        print(f"{name}/LAYERS: its folders are {', '.join(sorted(folders))}")
        return 1
    for group in circles.circles(between):
        print(f"{name}: circle of folders: {' '.join(group)}")
        bad += 1
    for a, targets in sorted(between.items()):
        for b, rows in sorted(targets.items()):
            if not layers.may_use(a, b, floors):
                print(f"{name}: {a} may not call {b}")
                tell(rows)
                bad += 1
    return bad


def control():
    """Calls up, calls between folders of one number, circles and folders
    without a row are refused; calls down are not."""
    down = {"low/a.c": "int a(void);\nint a(void)\n{\n\treturn 0;\n}\n",
            "high/b.c": "int a(void);\nint b(void);\nint b(void)\n{\n\treturn a();\n}\n",
            "main.c": "int b(void);\nint main(void)\n{\n\treturn b();\n}\n"}
    up = {"low/c.c": "int d(void);\nint c(void);\nint c(void)\n{\n\treturn d();\n}\n",
          "high/d.c": "int d(void);\nint d(void)\n{\n\treturn 0;\n}\n"}
    rising = {"low/e.c": "int f(void);\nint e(void);\nint e(void)\n{\n\treturn f();\n}\n",
              "f.c": "int f(void);\nint f(void)\n{\n\treturn 0;\n}\n"}
    wrong = []
    for layers_text, files, refused in (
            ("0 low\n1 high\n", down, 0), ("0 low\n0 high\n", down, 1), ("1 low\n0 high\n", down, 1),
            ("0 low\n", down, 1), ("", down, 1), ("0 low\n1 high\n", up, 1),
            ("0 low\n1 high\n", down | up, 2), ("0 low\n", rising, 1)):
        root = tree.plant({"p/LAYERS": layers_text,
                           **{f"p/{name}": text for name, text in files.items()}})
        for name in files:
            out = (root / "o/p" / name).with_suffix(".o")
            out.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-c", "-o", out, root / "p" / name], check=True)
        with contextlib.redirect_stdout(None):
            bad = check_program(root, "p", root / "o", [])
        if bad != refused:
            wrong.append(f"{layers_text!r}, {', '.join(files)}: {bad} refused, not {refused}")
        shutil.rmtree(root)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="*")
    parser.add_argument("--objects", type=pathlib.Path, default=tree.ROOT / "build/gcc")
    parser.add_argument("--control", action="store_true")
    options = parser.parse_args()
    if options.control:
        wrong = control()
        print("\n".join(wrong))
        return 1 if wrong else 0
    bad = 0
    for name in options.program or tree.programs(tree.ROOT):
        bad += check_program(tree.ROOT, name, options.objects.resolve(), options.program)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
