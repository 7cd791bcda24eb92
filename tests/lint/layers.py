#!/usr/bin/env python3
"""Refuse an #include that goes against common/LAYERS: of a module from a higher
layer; and within a program against its own LAYERS: of a file from a higher
floor, or another one of the same number. Files of a program that are on no
floor stand above all of them. A header own.h is of its folder alone. floors.py
does the same for calls.

    layers.py            exit 1 if refused
    layers.py --control  the lint refuses what it has to refuse"""
import re
import shutil
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_floors(root, name):
    """{folder: number} of a program; empty without a file LAYERS."""
    path = root / name / "LAYERS"
    lines = path.read_text().splitlines() if path.is_file() else []
    rows = [line.split("#")[0].split() for line in lines]
    return {row[1]: int(row[0]) for row in rows if row}


def read_layers(root):
    layer, only = {}, {}
    for line in (root / "common/LAYERS").read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        layer[words[1]] = int(words[0])
        if len(words) > 2:
            only[words[1]] = set(words[2:])
    return layer, only


def allowed(user, used, layer, only):
    if user == used:
        return True
    if user in only:
        return used in only[user]
    return used in layer and layer[used] < layer.get(user, 7)


def may_use(user, used, floors):
    """May a folder of a program use another one? What is in no folder stands
    above all of them; folders of one number do not know each other."""
    if user == used or user not in floors:
        return True
    return used in floors and floors[used] < floors[user]


def is_private(target, where):
    """The state of a folder, which other folders see by functions alone."""
    folder, _, leaf = target.rpartition("/")
    return leaf == "own.h" and folder != where.parent.as_posix()


def check(root):
    layer, only = read_layers(root)
    bad = 0
    for name, folder in sorted(tree.rooms(root).items()):
        name = name.removeprefix("common/")
        floors = read_floors(root, name)
        if folder.parent.name == "common" and name not in layer:
            print(f"common/{name}: has no row in common/LAYERS")
            bad += 1
        for source in sorted(folder.rglob("*.[ch]")) + sorted(folder.rglob("*.def")):
            where = source.relative_to(root)
            for number, line in enumerate(source.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                target = found.group(1)
                used = target.split("/")[0]
                down = used != name or may_use(where.parts[1], target.split("/")[1], floors)
                if ("/" not in target or not down or is_private(target, where)
                        or not allowed(name, used, layer, only)):
                    print(f"{where}:{number}: {name} may not include {target}")
                    bad += 1
    return bad


def control():
    root = tree.plant({
        "Makefile": "PROGRAMS := p\n", "common/LAYERS": "0 a\n1 b\n", "p/LAYERS": "1 high\n0 low\n0 beside\n",
        "common/a/a.h": '#include "b/b.h"\n', "common/b/b.h": '#include "a/a.h"\n',
        "common/c/c.h": "", "p/main.c": '#include "p/high/h.h"\n',
        "p/low/l.h": '#include "p/high/h.h"\n',
        "p/low/own.h": "", "p/low/l.c": '#include "p/low/own.h"\n',
        "p/high/h.h": '#include "p/low/l.h"\n#include "p/low/own.h"\n',
        "p/beside/b.h": '#include "p/low/l.h"\n#include "p/main.h"\n'})
    bad = check(root)
    shutil.rmtree(root)
    return [] if bad == 6 else [f"{bad} refused, not a module, three floors, own.h, and c without a row"]


if __name__ == "__main__":
    sys.exit(tree.run(check, control))
