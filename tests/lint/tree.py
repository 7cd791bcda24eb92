"""The tree as the lints see it: programs, modules, their files, comments.
Each lint takes the root of a tree, so that its control can give it a bad one."""
import contextlib
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|/\*.*?\*/|//[^\n]*', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def programs(root):
    text = (root / "Makefile").read_text()
    found = re.search(r"^PROGRAMS\s*:=((?:.*\\\n)*.*)", text, re.M)
    return found.group(1).replace("\\", " ").split()


def rooms(root):
    """{name: folder} of each program and each module."""
    found = {name: root / name for name in programs(root)}
    common = root / "common"
    if common.is_dir():
        found |= {f"common/{p.name}": p for p in sorted(common.iterdir()) if p.is_dir()}
    return {name: folder for name, folder in found.items() if folder.is_dir()}


def product(root, suffixes=(".c", ".h", ".def")):
    """Each source of the product, tests left out."""
    return [path for folder in rooms(root).values() for path in sorted(folder.rglob("*"))
            if path.suffix in suffixes]


def includes(root, path):
    """The files of the tree that a file includes."""
    for name in INCLUDE.findall(path.read_text()):
        for base in (root / "common", root):
            if (base / name).is_file():
                yield base / name
                break


def comments(text):
    """(line number, raw comment) of a C source; strings are not comments."""
    for found in COMMENT.finditer(text):
        if found.group(0).startswith("/"):
            yield text.count("\n", 0, found.start()) + 1, found.group(0)


def words(raw):
    """The text of a comment in one line, its frame of stars left out."""
    lines = re.sub(r"^/[*/]+|\*+/$", "", raw).split("\n")
    return " ".join(re.sub(r"^\s*\*(\s|$)", " ", line).strip() for line in lines).strip()


def plant(files):
    """A tree of these files ({path: text}) for a control."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="lint-control."))
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def run(check, control):
    """main() of a lint. check(root) prints what it refuses and returns how
    much that is; with --control the lint has to refuse what is wrong."""
    if "--control" in sys.argv:
        with contextlib.redirect_stdout(None):
            wrong = control()
        for line in wrong:
            print(f"control: {line}")
        return 1 if wrong else 0
    return 1 if check(ROOT) else 0
