"""Every case of tests/host/cases.py against the golden table: exit code, words
and what was queued; docs/SENDMAIL.md has the same."""
import pathlib
import sys

from case import SystemTest, cost
from instance import AS_ROOT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "host"))
import cases  # noqa: E402
import ours  # noqa: E402
import table  # noqa: E402


class Sendmail(SystemTest):
    maxDiff = None

    @cost(10)
    def test_each_case_is_as_the_table_says(self):
        golden = table.read()
        us = ours.Ours(self.instance)
        for case in cases.cases:
            if isinstance(case, str):
                continue
            with self.subTest(case.name):
                mine, want = us.run(case), golden.pop(case.name).ours
                # In a private instance it is not the door that speaks of disks.
                if case.state and not AS_ROOT:
                    mine, want = table.compared(mine), table.compared(want)
                if case.why == cases.LIST and not AS_ROOT:
                    want = ["exit 0", "says Mail queue is empty"]  # who owns the queues may read them
                if case.name in ("-q", "-qR", "-qS", "-qI") and not AS_ROOT:
                    want = ["exit 0"]  # and act
                self.assertEqual(mine, want)
        self.assertEqual(list(golden), [], "rows without a case")

    def test_the_page_is_the_table(self):
        rows = table.read().values()
        self.assertEqual(table.PAGE.read_text(), table.page(rows), "tests/host/sendmail-beside.py --write")
        for row in rows:
            self.assertEqual(row.differs(), bool(row.case.why), row.text())
