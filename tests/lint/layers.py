#!/usr/bin/env python3
"""Refuse an #include that goes against common/LAYERS."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_layers():
    layer, only = {}, {}
    for line in (ROOT / "common/LAYERS").read_text().splitlines():
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
    return used in layer and layer[used] < layer.get(user, 6)


def main():
    layer, only = read_layers()
    programs = re.search(r"^PROGRAMS := ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)
    folders = {p: ROOT / p for p in programs.group(1).replace("\\", " ").split()}
    folders |= {p.name: p for p in (ROOT / "common").iterdir() if p.is_dir()}
    bad = 0
    for name, folder in sorted(folders.items()):
        if folder.parent.name == "common" and name not in layer:
            print(f"common/{name}: has no row in common/LAYERS")
            bad += 1
        for source in sorted(folder.rglob("*.[ch]")) + sorted(folder.rglob("*.def")):
            for number, line in enumerate(source.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                target = found.group(1)
                used = target.split("/")[0]
                if "/" not in target or not allowed(name, used, layer, only):
                    print(f"{source.relative_to(ROOT)}:{number}: {name} may not include {target}")
                    bad += 1
    return 1 if bad else 0


sys.exit(main())
