#!/usr/bin/env python3
"""Refuse comments of the product that begin with a pronoun or a question word
where the noun should stand, and a star that a line break left behind.

    comments.py            exit 1 if one is refused
    comments.py FOLDER...  the same in these folders
    comments.py --control  the lint refuses what it has to refuse

A sentence within a comment that begins so is printed with --all; it is not
counted."""
import re
import sys

import tree

FIRST = re.compile(r"(it|its|it's|who|whoever|whom|whose|what|whatever|they|them|their|he|him|his|"
                   r"nobody|somebody|those)\b", re.I)
STAR = re.compile(r"\s\*[.,;:]|\s\*$|^\*(?!\w)|[a-z] \* [a-z]")
FRAME = re.compile(r"^[ \t]*\*[^\s*/]", re.M)  # " *word": clang-format broke a line so
FORMULA = re.compile(r"`[^`]*`|\S+ \* \S+ [<>=+-]|[<>=+(-]\s*\S+ \* \S+")


def wrong(raw):
    """The complaint about a comment, or None."""
    text = tree.words(raw).lstrip("-= \t")
    first = FIRST.match(text)
    if first:
        return f'begins with "{first.group(0)}"'
    if FRAME.search(raw) or STAR.search(FORMULA.sub("", text)):
        return "has a stray star"
    return None


def sentences(raw):
    for text in re.split(r"(?<=[.:;]) +", tree.words(raw))[1:]:
        if text[:1].isupper() and FIRST.match(text):
            yield text


def refused(root, folders=()):
    for path in tree.product(root):
        name = str(path.relative_to(root))
        if folders and not any(name.startswith(folder.rstrip("/") + "/") for folder in folders):
            continue
        for line, raw in tree.comments(path.read_text()):
            why = wrong(raw)
            if why:
                yield f"{name}:{line}: a comment that {why}: {tree.words(raw)[:70]}"
            elif "--all" in sys.argv:
                for text in sentences(raw):
                    yield f"{name}:{line}: a sentence: {text[:70]}"


def check(root):
    folders = [a for a in sys.argv[1:] if not a.startswith("--")]
    found = [line for line in refused(root, folders) if ": a comment " in line]
    if "--all" in sys.argv:
        found = list(refused(root, folders))
    print("\n".join(found), end="\n" if found else "")
    return len(found)


def control():
    bad = ["/* Who waits. */", "/* It is late. */", "/* what is there */", "/* They go. */",
           "/* Nobody. */", "/* ---- who waits ---- */", "/*\n * Whoever asks. */",
           "/* given up *. Pure: */", "/*\n * one\n * * two */", "// its owner",
           "/* One\n *two. */"]
    good = ["/* Italics. */", "/* The queue * 2 + 1 of it. */", "/* a < b * c */", "/* `dur *` */",
            "/* A heartbeat. Sent */", "/* Whole files. */", "/* *ret_n is set. */"]
    return ([f"passed: {c!r}" for c in bad if not wrong(c)] +
            [f"refused: {c!r}: {wrong(c)}" for c in good if wrong(c)])


if __name__ == "__main__":
    sys.exit(tree.run(check, control))
