#!/usr/bin/env python3
"""Each row of the fault catalogue that names something that is here stands in
the name of a test: D7 in Test(accept, D7_…) or def test_D7_….

PROMISED has those; ABSENT has the rest of the catalogue, each with the reason
why there is nothing to test. `make mutants` breaks the code of each promised
row and watches its test fail (tests/README.md)."""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
PROMISED = """D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22 D23 D24 D25 D27 D29 D30
D31 D32 D34
I1 I2 I3 I4 I5 I6 I7 I8 I9 I10 I11 I12 I13 I14 I15 I16 I17 I18
P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15 P16 P17 P18 P19 P20 P21 P22
N1 N2 N3 N4 N5 N6 N7 N9 N10 N11 N12 N13 N15 N17 N18 N19 S1 S2 S8 S10 S13 C1 C2 C3 C4 C6 C7 C8
F1 F2 F3 F4 F5 F6 F7 F8 F9 A1 A2 A4 A5 A6 A7
X1 X2 X3 X4 X5 X6 X7 X8 X9 X10 X11 X12 X13 X14 X15 X16 T1 T2 T3 T4 T5
attack_1 attack_2 attack_3 attack_4 attack_5 attack_6 attack_7 attack_8 attack_9 attack_10 attack_11 attack_12
attack_13 attack_14 attack_15""".split()

ABSENT = {
    "D26": "the kind of a file system is not looked at",
    "D28": "a copy made while it runs is not supported: names are inode numbers (docs/SPOOL.md)",
    "D33": "mount options are not looked at",
    "N8": "TLS is not spoken",
    "N14": "no connection is kept for a second message",
    "N16": "no program listens on a socket for mail",
    "S3": "SMTP is not received", "S4": "SMTP is not received",
    "S5": "SMTP is not received", "S6": "SMTP is not received",
    "S7": "SMTP is not received", "S9": "SMTP is not received",
    "S11": "nothing is submitted over a socket",
    "S12": "nothing is submitted over a socket",
    "C5": "no bounces are made",
    "A3": "no tool changes messages",
    "A8": "no tool repairs queues",
}
LAST = {"D": 34, "I": 18, "P": 22, "N": 19, "S": 13, "C": 8, "F": 9, "A": 8, "X": 16,
        "T": 5, "attack_": 15}
NAME = re.compile(r"Test\(\s*\w+,\s*(\w+)|def test_(\w+)")

names = []
for path in [*TESTS.rglob("*.c"), *TESTS.rglob("test_*.py")]:
    names += ["".join(groups) for groups in NAME.findall(path.read_text())]
names += re.findall(r'"(?:\w+: )?(D\d+) ', (TESTS / "disk/main.c").read_text())
carried = {row for row in [*PROMISED, *ABSENT]
           if any(re.search(rf"(^|_){row}(_|\b|$)", name) for name in names)}
missing = [row for row in PROMISED if row not in carried]
wrong = [row for row in ABSENT if row in carried or row in PROMISED]
catalogue = [f"{kind}{n}" for kind, last in LAST.items() for n in range(1, last + 1)]
unknown = [row for row in catalogue if row not in PROMISED and row not in ABSENT]
if unknown:
    print("neither promised nor said to be absent: " + " ".join(unknown))
if missing:
    print("no test carries the row: " + " ".join(missing))
if wrong:
    print("said to be absent, and a test carries it: " + " ".join(wrong))
sys.exit(bool(missing or wrong or unknown))
