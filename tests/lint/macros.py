#!/usr/bin/env python3
"""Refuse a word of a manual page that mdoc(7) takes for a macro: of
".Ql No message fits" a reader sees "message fits". mandoc -Tlint is silent, since
the line is right. The remedy is "\\&No".

    macros.py            exit 1 if refused
    macros.py --control  the lint refuses what it has to refuse"""
import re
import shutil
import sys

import tree

# Macros that begin within a line, by mandoc 1.14; the pages use the first
# group. A word of the second group is text that was not escaped.
MARKUP = set("Ar Bc Bo Bq Cm Dq Dv Em Er Ev Fl Ic Li Nm No Ns Oc Oo Op Pa Pc Po Pq Ql Qq Sq Sx Sy"
             " Ta Va Xr".split())
TEXT = set("Ac Ad An Ao Ap Aq At Brc Bro Brq Bsx Bx Cd Dc Do Dx Ec En Eo Es Fa Fc Fn Fo Fr Ft Fx"
           " In Lk Ms Mt Nx Ot Ox Pf Qc Qo Sc So St Tn Ux Vt Xc Xo".split())
# Their arguments are not searched for macros.
NOT_PARSED = {"Bd", "Bl", "Dd", "Dt", "Ed", "El", "Nd", "Os", "Sm"}
LITERAL = {"Ql", "Li"}
# "No" ends the font of these; behind the others it has no use.
FONTS = {"Ar", "Cm", "Dv", "Er", "Ev", "Fl", "Ic", "Nm", "Pa", "Va", "Xr"}
JOINTS = {"Ns", "Bc", "Oc", "Pc"}
DELIMITERS = set(".,:;?!)(][|")
WORD = re.compile(r'"[^"]*"|\S+')


def eaten(line):
    """The first word of a macro line that was meant as text, or None."""
    # groff, unlike mandoc, takes a word in quotes for a macro, too.
    first, *words = (word.strip('"') for word in WORD.findall(line[1:]))
    if first in NOT_PARSED:
        return None
    # The macro in force, and the word in front of the next one.
    macro, before = first, None
    for word in words:
        if word in TEXT or word in MARKUP and macro in LITERAL and before is None:
            return word
        if word == "No" and not (macro in JOINTS or before in DELIMITERS or
                                 macro in FONTS and before is not None):
            return word
        macro, before = (word, None) if word in MARKUP else (macro, word)
    return None


def check(root):
    wrong = 0
    for page in sorted((root / "etc/man").iterdir()):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            word = re.match(r"\.[A-Z]", line) and eaten(line)
            if word:
                print(f"etc/man/{page.name}:{number}: mdoc takes {word} for a macro: \\&{word}")
                wrong += 1
    return wrong


BAD = (".Ql No message fits .", ".Dq No such queue", ".Sq No x", ".Li No x", ".Em No x",
       ".It No mail", ".It Sy No mail", ".It Cm No", ".Ss Where No queue is", ".Pq No x",
       ".Pq Ql No x", ".Ql x. No y", ".Ql Fl x", ".Li Pa x", ".Ql Er", ".Sy At once", ".Dq An x",
       ".It Sy In queues", ".Sq what Do they", ".Ss At night", ".Cm x , So y", ".Ql Pf x")
GOOD = (".Ql \\&No message fits .", "No message fits .", ".Nd In a queue", ".Ql \"No message\"",
        ".Pq Cm limit No and others", ".Ar a : b No ...", ".No @ Ns Ar domain",
        ".Pq Ql yes : No a session", ".Oo Cm x Oc No y", ".Cm x Ns No y", ".It Cm x , Fl y",
        ".Dq Ar x", ".Ql To ,", ".Ql Cc", ".Ql a Ns Ar b", ".\\\" No In At")


def control():
    root = tree.plant({"etc/man/p.8": ""})
    wrong = []
    for lines, want in ((BAD, 1), (GOOD, 0)):
        for line in lines:
            (root / "etc/man/p.8").write_text(line + "\n")
            if check(root) != want:
                wrong.append(f"{line}: not {want} refused")
    shutil.rmtree(root)
    return wrong


if __name__ == "__main__":
    sys.exit(tree.run(check, control))
