#!/usr/bin/env python3
"""Each row of the fault catalogue that is promised stands in the name of a
test: D7 in Test(accept, D7_…) or def test_D7_…."""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
PROMISED = """D1 D5 D7 D9 D10 D12 D13 D14 D15 D16 D17 D18 D19 D20 D22
I1 I2 I3 I4 I5 I6 I7 I8 I10 I11 I12 I13 I14 I15 I16
P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P16 P17 P18 P19 P20 P21 P22 T5 C1 C4 F1 F2 F3 F4 F5 F6 F7 A1
attack_1 attack_2 attack_3 attack_4 attack_6 attack_7 attack_8""".split()
NAME = re.compile(r"Test\(\s*\w+,\s*(\w+)|def test_(\w+)")

names = []
for path in [*TESTS.rglob("*.c"), *TESTS.rglob("test_*.py")]:
    names += ["".join(groups) for groups in NAME.findall(path.read_text())]
missing = [row for row in PROMISED
           if not any(re.search(rf"(^|_){row}(_|\b|$)", name) for name in names)]
if missing:
    print("no test carries the row: " + " ".join(missing))
sys.exit(bool(missing))
