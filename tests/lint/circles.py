#!/usr/bin/env python3
"""Refuse a circle of more than three files within a program or a module.

The arrows come from the compiler: a.c points to b.c if a.o lacks a symbol that
b.o of the same room defines.

    circles.py                 the largest circle of each room; exit 1 if refused
    circles.py ROOM...         each arrow within the circles of these rooms
    circles.py --objects DIR   the objects of another variant than build/gcc
    circles.py --control       the lint refuses what it has to refuse

Objects are those that `make all` leaves; one that is missing or older than its
source is an error."""
import argparse
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys

import tree

MOST = 3


def objects(root, folder, built):
    """{source: object} of a room."""
    found = {}
    for source in sorted(folder.rglob("*.c")):
        name = source.relative_to(root)
        found[str(name)] = built / name.with_suffix(".o")
    return found


def stale(root, found):
    return [source for source, obj in found.items() if not obj.exists()
            or obj.stat().st_mtime < (root / source).stat().st_mtime]


def symbols(found):
    """({source: lacks}, {symbol: source that defines it})"""
    lacks, defines = {source: set() for source in found}, {}
    sources = {str(obj): source for source, obj in found.items()}
    out = subprocess.run(["nm", "-A", "--format=posix", *sources], check=True,
                         capture_output=True, text=True).stdout
    for line in out.splitlines():
        obj, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        if kind == "U":
            lacks[sources[obj]].add(name)
        elif kind in "TDBRWVC":
            defines[name] = sources[obj]
    return lacks, defines


def arrows(found):
    """{source: {source: symbols}}"""
    lacks, defines = symbols(found)
    graph = {source: {} for source in found}
    for source, names in lacks.items():
        for name in sorted(names):
            target = defines.get(name)
            if target and target != source:
                graph[source].setdefault(target, []).append(name)
    return graph


def reach(graph, start):
    seen, left = set(), [start]
    while left:
        for target in graph[left.pop()]:
            if target not in seen:
                seen.add(target)
                left.append(target)
    return seen


def circles(graph):
    """Sets of files that all reach one another, the largest first."""
    reached = {source: reach(graph, source) for source in graph}
    found = {frozenset([source] + [target for target in reached[source]
                                   if source in reached[target]]) for source in graph}
    return sorted((sorted(group) for group in found if len(group) > 1), key=lambda g: -len(g))


def tell(graph, group):
    for source in group:
        for target, names in sorted(graph[source].items()):
            if target in group:
                print(f"    {source} -> {target}: {', '.join(names)}")


def check_room(root, name, folder, built, wanted):
    found = objects(root, folder, built)
    old = stale(root, found)
    if old:
        print(f"{old[0]}: no object of it in {built}, or an older one: make all")
        return 1
    graph = arrows(found)
    groups = circles(graph)
    size = len(groups[0]) if groups else 1
    print(f"{name}: largest circle {size} of {len(graph)} files")
    for group in groups:
        if len(group) > MOST or name in wanted:
            print(f"  circle of {len(group)}: {' '.join(group)}")
            tell(graph, group)
    return size > MOST


def control():
    """Four files in a circle, of which one only takes the address of the next
    one's function, are refused; three are not."""
    wrong = []
    for count, refused in ((4, True), (3, False)):
        ring = {f"p/f{i}.c": f"int f{(i + 1) % count}(int);\nint f{i}(int);\n"
                f"int f{i}(int n)\n{{\n\treturn n ? f{(i + 1) % count}(n - 1) : 0;\n}}\n"
                for i in range(count)}
        ring["p/f0.c"] = ("int f1(int);\nextern int (*const f0)(int);\n"
                          "int (*const f0)(int) = f1;\n")
        ring[f"p/f{count - 1}.c"] = (f"extern int (*const f0)(int);\nint f{count - 1}(int);\n"
                                     f"int f{count - 1}(int n)\n{{\n\treturn f0(n);\n}}\n")
        root = tree.plant({"Makefile": "PROGRAMS := p\n", "common/LAYERS": "", **ring})
        (root / "o/p").mkdir(parents=True)
        for name in ring:
            subprocess.run(["cc", "-c", "-o", root / "o" / re.sub("c$", "o", name), root / name],
                           check=True)
        with contextlib.redirect_stdout(None):
            bad = check_room(root, "p", root / "p", root / "o", [])
        if bool(bad) != refused:
            wrong.append(f"a circle of {count} was {'not ' * refused}refused")
        shutil.rmtree(root)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("room", nargs="*")
    parser.add_argument("--objects", type=pathlib.Path, default=tree.ROOT / "build/gcc")
    parser.add_argument("--control", action="store_true")
    options = parser.parse_args()
    if options.control:
        wrong = control()
        print("\n".join(wrong))
        return 1 if wrong else 0
    bad = 0
    for name, folder in tree.rooms(tree.ROOT).items():
        if not options.room or name in options.room:
            bad += check_room(tree.ROOT, name, folder, options.objects.resolve(), options.room)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
