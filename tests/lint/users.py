#!/usr/bin/env python3
"""Refuse more headers with a single user than the budget allows, and files of
common/ that only one program uses.

A user of a header is a file that includes it and is not its own source (x.c of
x.h). A header that is for one file alone belongs into the header of its floor.

A program uses a file of common/ when it links it or includes it: its own
sources, the sources of common/ that define what those lack (from the symbol
tables of the objects in build/gcc, as circles.py has them), and every header
that one of these includes.

    users.py              both, exit 1 if refused
    users.py --list       the headers with one user, each with that user
    users.py --control    the lint refuses what it has to refuse"""
import re
import shutil
import subprocess
import sys

import circles
import tree

BUDGET = 40


def header_users(root):
    users = {}
    for path in tree.product(root):
        for used in tree.includes(root, path):
            if used.suffix == ".h" and used.with_suffix(".c") != path:
                users.setdefault(used, set()).add(path)
    return users


def single(root):
    """{header: its only user}, None where a header has none."""
    users = header_users(root)
    found = {}
    for path in tree.product(root, (".h",)):
        of = users.get(path, set())
        if len(of) < 2:
            found[path.relative_to(root)] = of.pop().relative_to(root) if of else None
    return found


def linked(start, lacks, defines):
    """The files of common/ that a program links."""
    seen, left = set(), list(start)
    while left:
        for name in lacks[left.pop()]:
            target = defines.get(name)
            if target and target not in seen:
                seen.add(target)
                left.append(target)
    return seen


def included(root, sources):
    seen, left = set(), [root / source for source in sources]
    while left:
        for used in tree.includes(root, left.pop()):
            if used not in seen:
                seen.add(used)
                left.append(used)
    return {str(path.relative_to(root)) for path in seen}


def common_users(root, built):
    """{file of common/: programs that use it}"""
    rooms = tree.rooms(root)
    common = {}
    for name, folder in rooms.items():
        if name.startswith("common/"):
            common |= circles.objects(root, folder, built)
    old = circles.stale(root, common)
    if old:
        print(f"{old[0]}: no object of it in {built}, or an older one: make all")
        return None
    lacks, defines = circles.symbols(common)
    users = {str(path.relative_to(root)): set() for path in tree.product(root)
             if (root / "common") in path.parents}
    for name in tree.programs(root):
        own = circles.objects(root, rooms[name], built)
        own_lacks, own_defines = circles.symbols(own)
        outer = {n: s for n, s in defines.items() if n not in own_defines}
        files = linked(own, own_lacks | lacks, outer)
        for path in files | included(root, list(own) + sorted(files)):
            if path in users:
                users[path].add(name)
    return users


def allowed(root):
    """{file or folder: reason} of tests/lint/one-user.list"""
    path = root / "tests/lint/one-user.list"
    lines = path.read_text().splitlines() if path.is_file() else []
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def check_common(root, built):
    users = common_users(root, built)
    if users is None:
        return 1
    allow, hit, bad = allowed(root), set(), 0
    for path, programs in sorted(users.items()):
        if len(programs) > 1:
            continue
        row = next((a for a in allow if path == a or path.startswith(a + "/")), None)
        if row:
            hit.add(row)
            continue
        print(f"{path}: {f'only {programs.pop()} uses it' if programs else 'no program uses it'}")
        bad += 1
    for row in sorted(allow.keys() - hit):
        print(f"tests/lint/one-user.list: {row}: more than one program uses it, or it is gone")
        bad += 1
    return bad


def check(root):
    found = single(root)
    print(f"headers with one user: {len(found)} of {len(tree.product(root, ('.h',)))}, "
          f"{BUDGET} at most")
    bad = 0
    for path, user in found.items():
        if user is None:
            print(f"{path}: no source but its own includes it")
            bad += 1
    if len(found) > BUDGET:
        print("\n".join(f"  {path}: {user}" for path, user in found.items()))
        bad += 1
    return bad + check_common(root, root / "build/gcc")


def control():
    """One header of two has one user; of two files of common/ one serves one
    program, and a row of the list is idle."""
    files = {
        "Makefile": "PROGRAMS := p q\n",
        "common/LAYERS": "0 m\n",
        "common/m/both.h": "int both(void);\n",
        "common/m/both.c": '#include "m/both.h"\nint both(void)\n{\n\treturn 1;\n}\n',
        "common/m/one.h": "int one(void);\n",
        "common/m/one.c": '#include "m/one.h"\nint one(void)\n{\n\treturn 1;\n}\n',
        "p/p.c": '#include "m/both.h"\n#include "m/one.h"\n'
                 "int p(void);\nint p(void)\n{\n\treturn both() + one();\n}\n",
        "q/q.c": '#include "m/both.h"\nint q(void);\nint q(void)\n{\n\treturn both();\n}\n',
        "tests/lint/one-user.list": "common/m/gone.c a reason\n",
    }
    root = tree.plant(files)
    for name in files:
        if name.endswith(".c"):
            target = root / "build/gcc" / re.sub("c$", "o", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-I", root / "common", "-c", "-o", target, root / name],
                           check=True)
    wrong = []
    if {str(h): str(u) for h, u in single(root).items()} != {"common/m/one.h": "p/p.c"}:
        wrong.append(f"headers with one user: {single(root)}")
    bad = check_common(root, root / "build/gcc")
    if bad != 3:
        wrong.append(f"{bad} refused in common/, not one.c, one.h and the idle row")
    shutil.rmtree(root)
    return wrong


if __name__ == "__main__":
    if "--list" in sys.argv:
        for header, user in single(tree.ROOT).items():
            print(f"{header}: {user}")
        sys.exit(0)
    sys.exit(tree.run(check, control))
