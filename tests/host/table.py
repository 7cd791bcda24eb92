"""The golden table of all cases, and the tables of docs/SENDMAIL.md from it."""
import collections
import pathlib

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/sendmail"
PAGE = ROOT / "docs/SENDMAIL.md"
BEGIN, END = "<!-- tables begin -->\n", "<!-- tables end -->\n"


class Row(collections.namedtuple("Row", "case ours theirs")):
    def text(self):
        """A block of the golden file."""
        lines = [f"== {self.case.name}"] + [f"ours    {s}" for s in self.ours] + [f"Postfix {s}" for s in self.theirs]
        return "\n".join(lines) + "\n"

    def differs(self):
        """Words differ always: compared are the exit code, whether anything is
        said on failure, and what is queued."""
        return compared(self.ours) != compared(self.theirs)


def compared(lines):
    return [s for s in lines if not s.startswith("says ")]


def read():
    """Rows of the golden file by name."""
    rows, known = {}, {c.name: c for c in cases.cases if not isinstance(c, str)}
    for block in GOLDEN.read_text().split("== ")[1:]:
        name, *lines = block.splitlines()
        rows[name] = Row(known.get(name), *([s[8:] for s in lines if s.startswith(w)] for w in ("ours    ", "Postfix ")))
    return rows


def cell(lines):
    """What came out, in a cell of a table; the usual goes without saying."""
    usual = ["from OWN to <bob@site.test>", "  text 'body\\n'"]
    words = [s for s in lines if not (s in usual and usual[1] == lines[-1] and s != lines[0])]
    words[0] = words[0].removeprefix("exit ")
    shown = []
    for word in words:
        kind, _, rest = word.strip().partition(" ")
        if kind in ("says", "text", "adds", "drops"):
            rest = f"`` {rest} ``" if "`" in rest else f"`{rest}`"
            word = rest if kind == "says" else f"{kind} {rest}"
        else:
            word = word.strip().replace("<", "\\<")
        if len(word) > 300:
            word = "…".join((word[:100], word[-20:]))
        shown.append(word.replace("|", "\\|"))
    return "; ".join(shown)


def tables(rows):
    """The tables of the page: one for each section."""
    by_name = {r.case.name: r for r in rows if r.case is not None}
    text = []
    for case in cases.cases:
        if isinstance(case, str):
            text.append(f"\n### {case}\n\n| case | here | Postfix | why |\n|---|---|---|---|\n")
            continue
        row = by_name[case.name]
        same = not row.differs()
        text.append(f"| {case.name.replace('<', chr(92) + '<')} | {cell(row.ours)} | "
                    f"{'the same' if same else cell(row.theirs)} | {case.why} |\n")
    return "".join(text) + "\n"


def page(rows):
    """The whole page, with these tables."""
    head, rest = PAGE.read_text().split(BEGIN)
    return head + BEGIN + tables(rows) + END + rest.split(END)[1]


def write(rows):
    GOLDEN.write_text("".join(r.text() for r in rows))
    PAGE.write_text(page(rows))


def judge(rows):
    """The exit code: every difference has a reason, every reason a difference,
    and all is as it was recorded."""
    golden, faults = read(), 0
    for row in rows:
        known = golden.get(row.case.name)
        for wrong, what in ((row.differs() and not row.case.why, "UNEXPLAINED"),
                            (row.case.why and not row.differs(), "EXPLAINS NOTHING"),
                            (known is None or known.text() != row.text(), "IS NOT IN tests/golden/sendmail")):
            if wrong:
                print(f"{what}\n{row.text()}")
                faults += 1
    count = sum(r.differs() for r in rows)
    print(f"{len(rows)} cases, {count} differ from Postfix, "
          f"{f'{faults} faults' if faults else 'no difference unexplained'}")
    return int(faults > 0)
