"""qsim as people run it: what it prints, what it says of what it cannot take."""
import os
import pathlib
import subprocess
import tempfile

from case import SystemTest
from instance import BIN, HANG

ROOT = pathlib.Path(__file__).resolve().parents[2]

SMALL = """agents smtp 2
set default_destination_recipient_limit 2
set initial_destination_concurrency 2
fail a 3
at 0 msg a*8
at 0 msg b
at 0.5 msg a
"""

EXPLAINED = """0 1 smtp/a 2
    current: message 1 (0 of 4 entries selected, 0/5 slots); not preempted: it has no slots to pay with
    a: 1 of a window of 2 in use
0 1 smtp/a 2
    current: message 1 (1 of 4 entries selected, 1/5 slots); not preempted: its 4 entries are fewer than 3 minimum slots at a cost of 5
    a: 2 of a window of 2 in use
1 at smtp/a: message 1: 2 recipients deferred: connection failed; its window was 2 and is 1
1 at smtp/a: message 1: 2 recipients deferred: connection failed; it is dead until 301
1 at smtp/a: message 1: 2 recipients deferred without an attempt: connection failed
1 at smtp/a: message 1: 2 recipients deferred without an attempt: connection failed
1 at smtp/a: message 3: 1 recipients deferred without an attempt: connection failed
1 2 smtp/b 1
    current: message 2 (0 of 1 entries selected, 0/5 slots); not preempted: it has no slots to pay with
    b: 1 of a window of 2 in use; this is the last entry of its job
2 at smtp/b: message 2 was delivered; its window was 2 and is 3
"""

PREEMPTED = """agents smtp 1
at 0 msg a#0-39
at 0 msg b#0-5
"""


class Simulator(SystemTest):
    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def file(self, text):
        path = self.dir / "f.scn"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def qsim(self, *arguments, want=0, **options):
        done = subprocess.run([BIN / "qsim", *arguments], check=False, timeout=HANG,
                              **{"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
        self.assertEqual(done.returncode, want, f"{arguments}: {done.stdout}{done.stderr}")
        return done

    def test_vectors(self):
        vectors = sorted((ROOT / "tests/vectors").glob("*.scn"))
        self.assertGreaterEqual(len(vectors), 129)
        for scenario in vectors:
            done = self.qsim("replay", scenario)
            self.assertEqual(done.stdout, scenario.with_suffix(".picks").read_text(), scenario.name)
            self.assertEqual(done.stderr, "")

    def test_explain_says_why(self):
        self.assertEqual(self.qsim("explain", self.file(SMALL)).stdout, EXPLAINED)
        said = self.qsim("explain", self.file(PREEMPTED)).stdout
        self.assertIn("preempted: message 2 is the best candidate (score 0.333 s per entry, needs 6): "
                      "0 whole slots + loan 3 are at least 3.00 (6 less 50 %)", said)
        said = self.qsim("explain", self.file(PREEMPTED.replace("b#0-5", "b#0-6"))).stdout
        self.assertIn("not preempted yet: message 2 is the best candidate", said)
        said = self.qsim("explain", self.file(PREEMPTED.replace("b#0-5", "b#0-99"))).stdout
        self.assertIn("not preempted: no candidate needs at most 8 entries", said)

        said = self.qsim("explain", ROOT / "tests/vectors/S11.scn").stdout
        self.assertIn("2 whole slots + loan 0 are less than 3.00 (3 less 0 %)", said)
        said = self.qsim("explain", ROOT / "tests/vectors/B002.scn").stdout
        self.assertRegex(said, r"message (\d+) is full, message (\d+) is the next that is not")

    def test_explain_has_the_lines_of_replay(self):
        for scenario in sorted((ROOT / "tests/vectors").glob("[ABM]00*.scn")):
            lines = [line for line in self.qsim("explain", scenario).stdout.splitlines(True)
                     if not line.startswith(" ") and " at " not in line]
            self.assertEqual("".join(lines), scenario.with_suffix(".picks").read_text())

    def test_published_is_within(self):
        one = self.qsim("published").stdout
        self.assertIn("seed 1;", one)
        self.assertEqual(one.count(" ok\n"), 9, one)
        many = self.qsim("published", "--runs", "5", "--seed", "10").stdout
        self.assertIn("seed 10 to 14;", many)
        self.assertEqual(many.count(" ok\n"), 9, many)
        self.assertEqual(many, self.qsim("published", "--runs", "5", "--seed", "10").stdout)

    def test_compare_ships_workloads(self):
        workloads = sorted((ROOT / "etc/workloads").glob("*.scn"))
        self.assertGreaterEqual(len(workloads), 4)
        said = self.qsim("compare", "--plot", "--set", "default_delivery_slot_cost=50", *workloads)
        for workload in workloads:
            self.assertIn(f"{workload}: ", said.stdout)
        self.assertEqual(said.stdout.count("first come, first served; all done"), len(workloads))
        self.assertEqual(said.stdout.count("\n--set 1: default_delivery_slot_cost=50; "), len(workloads))
        self.assertIn("delays of messages with 1 recipients\n", said.stdout)
        self.assertRegex(said.stdout, "[\u2801-\u28ff]")
        self.assertEqual(said.stderr, "")

    def test_A1_wrong_usage(self):
        good = self.file(SMALL)
        for arguments, want in (
                ((), "no command given"), (("fly",), "unknown command `fly'"),
                (("replay",), "no scenario given"), (("replay", good, good), "too many arguments"),
                (("--runs", "3", "published"), "the command stands before its options"),
                (("replay", "--runs", "3", good), "replay takes no option --runs"),
                (("published", "--runs"), "needs a value"), (("published", good), "too many arguments"),
                (("published", "--runs", "0"), "--runs `0': not a number, 1 to 10000"),
                (("published", "--seed", "-1"), "--seed `-1': not a number"),
                (("compare",), "no scenario given"), (("compare", "-x", good), "unknown option `-x'"),
                (("compare", "--nonsense" + 5000 * "x", good), "unknown option `--nonsense"),
                (("compare", "--set", "x", good), "--set `x': not NAME=VALUE,..."),
                (("compare", "--set", "a=1,,b=2", good), "--set `a=1,,b=2': not NAME=VALUE,..."),
                (("compare", "--set", "no_such=1", good), "--set:1: no_such: unknown parameter"),
                (("compare", "--set", "default_delivery_slot_cost=x", good),
                 "--set:1: default_delivery_slot_cost: must be a whole number"),
                (("compare", *32 * ("--set", "a=1"), "--set", "b=1", good), "one too many")):
            done = self.qsim(*arguments, want=100)
            self.assertIn(want, done.stderr)
            self.assertLess(len(done.stderr), 600)
            self.assertEqual(done.stdout, "")

    def test_broken_scenarios(self):
        for text, want in ((b"", "expected a message"), ("at 0 msg a#9-0", ":1: expected #LOW-HIGH"),
                           (b"at 0 msg a\0", ":1: expected lines of text, not a NUL"),
                           ("\n\nfly", ":3: expected set, agents"), ("set x 1\nat 0 msg a", ":1: x: unknown")):
            for command in ("replay", "explain", "compare"):
                path = self.file(text)
                done = self.qsim(command, path, want=100)
                self.assertIn(f"qsim: {path}", done.stderr)
                self.assertIn(want, done.stderr)
        strange = self.dir / "a\033[31m\nb"
        self.assertIn("a?[31m?b: No such file", self.qsim("replay", strange, want=100).stderr)
        strange.write_text("fly")
        self.assertIn("a?[31m?b:1: expected", self.qsim("replay", strange, want=100).stderr)
        self.assertIn("Is a directory", self.qsim("replay", self.dir, want=100).stderr)
        self.assertIn("No such file", self.qsim("replay", self.dir / "none", want=100).stderr)

    def test_environment_and_configuration_do_not_matter(self):
        conf = self.dir / "conf"
        conf.write_text("nonsense\n")
        environment = dict(os.environ, QSCHED_CONF=str(conf), QUEUE_COUNT="x")
        self.qsim("replay", self.file(SMALL), env=environment)

    def test_output_that_fails_is_told(self):
        path = self.file(SMALL)
        for arguments in (("replay", path), ("explain", path), ("published",), ("compare", path),
                          ("--help",), ("--version",)):
            with open("/dev/full", "wb") as full:
                done = self.qsim(*arguments, want=111, stdout=full)
            self.assertIn("standard output cannot be written", done.stderr)

    def test_help_version_and_pipes(self):
        self.assertIn("usage: qsim replay FILE", self.qsim("--help").stdout)
        self.assertRegex(self.qsim("--version").stdout, r"^qsim \d")
        self.assertEqual(self.qsim("replay", "/dev/stdin", input=SMALL).stdout.count("\n"), 3)

    def test_progress(self):
        many = self.file("agents smtp 10\nrepeat 5000 every 0.1 at 0 msg a b c\n")
        self.assertEqual(self.qsim("compare", many).stderr, "", "no terminal")
        done = self.qsim("compare", "--progress", many, text=False)
        self.assertRegex(done.stderr, rb" % \(\d+ of 15000 recipients\)")
        self.assertTrue(done.stderr.endswith(b"\r\033[K"), done.stderr[-100:])
