#!/usr/bin/env python3
"""Refuse references to what is not there: pages of docs, their sections and
rules, source files, and rows of the fault catalogue.

    docs/X.md                      the page exists (comments, pages, manuals)
    docs/X.md, "Name"              it has a heading, or a bold beginning, of these words
    docs/X.md, section 6; rule 5   it has a heading with this number (a rule
                                   without a page is one of docs/SCHEDULING.md)
    x.c, floor/x.h                 a source of this name exists (comments)
    `struct x`, `floor/x.c`        the code has it (pages of docs)
    D22                            docs/FAULTS.md has the row (comments; names
                                   of tests are for rows.py)

references.py --rows prints the comments that name a row; with --control the
lint refuses what it has to refuse."""
import re
import shutil
import sys

import tree

PAGE = re.compile(r"(?<![\w/])((?:docs/|\.\./docs/|tests/)?([A-Z][A-Z_-]+)\.md)\b")
AFTER_NUMBER = re.compile(r"^\)?,? (?:sections?|rules?)? ?(\d+)(?:\.\d+)?(?:(?:,| and| to) (\d+)\b)?")
AFTER_NAME = re.compile(r'^\)?, "([^"]+)"')
RULE = re.compile(r"(?<!\w)[Rr]ules? (\d+)(?:\.\d+)?(?:(?:,| and| to) (\d+)\b)?")
SOURCE = re.compile(r"(?<![\w/<.*-])((?:[a-z_0-9-]+/)*[a-z_0-9-]+\.(?:c|h|def|py))\b(?!>)")
ROW = re.compile(r"(?<![\w.-])([DIPNSCFAXT]\d{1,2})(?![\w.=-])")
LINK = re.compile(r"\]\(([^)#:]*)(#[^)]*)?\)")
# System headers that comments name without brackets.
FOREIGN = {"sys/queue.h", "sys/tree.h", "sysexits.h"}


def headings(page):
    return re.findall(r"^(?:#+ |\*\*)([^*\n]+)", page.read_text(), re.M)


def numbers(page):
    return {m.group(1) for m in (re.match(r"(\d+)\.", h) for h in headings(page)) if m}


def find_page(root, name, word):
    """The file that a reference means: docs/X.md, tests/README.md, or X.md
    beside another page of docs."""
    for path in (root / name, root / "docs" / f"{word}.md", root / f"{word}.md"):
        if path.is_file() and (name.startswith("tests/") or path.parent.name != "tests"):
            return path
    return None


def pages(root, text, own=None):
    """Complaints about references to pages in a text."""
    for found in PAGE.finditer(text):
        page = find_page(root, found.group(1).removeprefix("../"), found.group(2))
        if not page:
            yield f"{found.group(1)} does not exist"
            continue
        rest = text[found.end():]
        name, number = AFTER_NAME.match(rest), AFTER_NUMBER.match(rest)
        if name and not any(name.group(1) in h for h in headings(page)):
            yield f'{page.name} has no section "{name.group(1)}"'
        if number:
            for n in filter(None, number.groups()):
                if n not in numbers(page):
                    yield f"{page.name} has no section {n}"
    scheduling = own or root / "docs/SCHEDULING.md"
    for found in RULE.finditer(text):
        for n in filter(None, found.groups()):
            if scheduling.is_file() and n not in numbers(scheduling):
                yield f"{scheduling.name} has no rule {n}"


def sources(root):
    """Each name by which a source may be called: x.c, floor/x.c, m/x.h."""
    names = set()
    for path in [*tree.product(root), *(root / "tests").rglob("*.*")]:
        parts = path.relative_to(root).parts
        names |= {"/".join(parts[i:]) for i in range(len(parts))}
    return names


def rows(root):
    page = root / "docs/FAULTS.md"
    return set(re.findall(r"^\| ([A-Z]\d+) \|", page.read_text(), re.M)) if page.is_file() else set()


def comment_text(root):
    for path in tree.product(root):
        text = path.read_text()
        for line, raw in tree.comments(text):
            yield f"{path.relative_to(root)}:{line}", tree.words(raw)
    for path in sorted((root / "tests").rglob("*.[ch]")):
        for line, raw in tree.comments(path.read_text()):
            yield f"{path.relative_to(root)}:{line}", tree.words(raw)


def refused_comments(root):
    known, catalogue = sources(root), rows(root)
    for where, text in comment_text(root):
        for what in pages(root, text):
            yield f"{where}: {what}"
        if where.startswith("tests/"):
            continue
        for name in SOURCE.findall(text):
            if name not in known and name not in FOREIGN:
                yield f"{where}: {name} does not exist"
        for row in ROW.findall(text):
            if catalogue and row not in catalogue:
                yield f"{where}: docs/FAULTS.md has no row {row}"


def names(root, code, text):
    """Files, structs, enums and constants that a page has in backticks."""
    for name in sorted(set(re.findall(r"`([^`\n]+)`", text))):
        tag = re.fullmatch(r"(?:struct|enum) \w+", name)
        file = re.fullmatch(r"(?:[\w-]+/)+[\w-]+\.(?:c|h|def|py)", name)
        if tag and not re.search(rf"\b{name}\b", code):
            yield f"the code has no {name}"
        if file and name not in FOREIGN and not any(
                (root / base / name).is_file() for base in (".", "common", "tests")):
            yield f"{name} does not exist"


def refused_pages(root):
    code = "\n".join(path.read_text() for path in tree.product(root))
    files = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / "tests").rglob("*.md")]
    for path in sorted(files):
        name = path.relative_to(root)
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
        own = path if path.parent.name == "docs" and numbers(path) else None
        for target, _ in LINK.findall(text):
            if target and not (path.parent / target).exists():
                yield f"{name}: the link {target} leads nowhere"
        if own:
            for found in re.finditer(r"(?<!\w)[Ss]ections? (\d+)(?![\d.]*\d*\.\d)", text):
                before = text[max(0, found.start() - 40):found.start()]
                if found.group(1) not in numbers(path) and not re.search(r"RFC \d+,? ?$|\.md\),? $", before):
                    yield f"{name}: it has no section {found.group(1)}"
        if path.parent.name == "docs":
            for what in names(root, code, text):
                yield f"{name}: {what}"
        for what in pages(root, text.replace("](", " "), own):
            yield f"{name}: {what}"


def check(root):
    found = [*refused_comments(root), *refused_pages(root)]
    print("\n".join(found), end="\n" if found else "")
    return len(found)


def control():
    page = "# Page\n\n## 1. Words\n\n## Power cuts\n"
    bad = {"docs/NONE.md": "does not exist", 'docs/PAGE.md, "Life"': "no section",
           "docs/PAGE.md, section 3": "no section 3", "docs/PAGE.md, 1 and 4": "no section 4",
           "gone.c has it": "gone.c does not", "old/b.h": "old/b.h does not",
           "reused (D2)": "no row D2", "rule 7": "no rule 7"}
    good = ['docs/PAGE.md, "Power cuts"', "docs/PAGE.md, section 1", "a.c", "p/a.c", "(D1)",
            "RFC 5321 section 4.5.3.2", "C17", "<event.h>", "rule 1", "sys/queue.h"]
    root = tree.plant({"Makefile": "PROGRAMS := p\n", "docs/PAGE.md": page,
                       "docs/SCHEDULING.md": page, "tests/x.py": "",
                       "docs/FAULTS.md": "| D1 | fault |\n| C17 | row |\n",
                       "p/a.c": "".join(f"/* {c}. */\n" for c in [*bad, *good])})
    said = list(refused_comments(root))
    wrong = [f"passed: {c}" for i, (c, what) in enumerate(bad.items(), 1)
             if not any(line.startswith(f"p/a.c:{i}: ") and what in line for line in said)]
    wrong += [f"refused: {line}" for line in said if int(line.split(":")[1]) > len(bad)]
    shutil.rmtree(root)
    root = tree.plant({"Makefile": "PROGRAMS := p\n", "tests/x.py": "",
                       "docs/PAGE.md": page + "[a](GONE.md) [b](PAGE.md), section 5\n"
                       "`struct gone`, `p/gone.c`, `p/a.c`, `enum here`\n",
                       "p/a.c": "enum here;\n"})
    found = list(refused_pages(root))
    if len(found) != 5:
        wrong.append(f"a page: {found}")
    shutil.rmtree(root)
    return wrong


if __name__ == "__main__":
    if "--rows" in sys.argv:
        for at, comment in comment_text(tree.ROOT):
            if ROW.search(comment) and not at.startswith("tests/"):
                print(f"{at}: {comment[:110]}")
        sys.exit(0)
    sys.exit(tree.run(check, control))
