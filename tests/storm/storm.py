#!/usr/bin/python3
"""storm.py [--seconds S] [--seed N] [--bin DIR] [--place shared|private|both|hostile]
            [--fault discard|lose] [--controls] [--relaxed] [--out DIR] [--plan]

A whole instance under random load, kills, stops, damage, full and frozen disks
and hostile users, all from one seed; in the end every accepted message is
accounted for (tests/README.md). Exit 0: it was; 1: it was not."""
import argparse
import json
import os
import pathlib
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "system"))
import namespace  # pylint: disable=wrong-import-position
import plan  # pylint: disable=wrong-import-position


FAULTS = ("discard", "lose")


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bin", default=os.environ.get("QSCHED_BIN", HERE.parents[1] / "build/bin"))
    parser.add_argument("--place", choices=("shared", "private", "both", "hostile"), default="both")
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--relaxed", action="store_true", help="say nothing of how long things took")
    parser.add_argument("--out", help="where the plan, the events and the log are kept")
    parser.add_argument("--plan", action="store_true", help="print the events, and that is all")
    parser.add_argument("--controls", action="store_true", help="short storms with faults too, which must be found")
    parser.add_argument("--without", default="", help="events that are left out, with commas")
    parser.add_argument("--behaviours", default="", help="of hostile users, with commas; all of them without")
    return parser.parse_args()


def inside(place, scratch, out, given):
    """The storm itself, in its place, as its user."""
    def work():
        if place == "private":
            nobody = pwd.getpwnam("nobody")
            base = scratch / "queue"
            base.mkdir()
            namespace.mount("tmpfs", base, "-o", f"size=48m,nr_inodes=20000,mode=700,uid={nobody.pw_uid}")
            os.setgroups([])
            os.setresgid(*[nobody.pw_gid] * 3)
            os.setresuid(*[nobody.pw_uid] * 3)
        return run_storm(place, scratch, out, given)
    return work


def run_storm(place, scratch, out, given):
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    os.environ["QSCHED_BIN"] = str(scratch / "build")
    os.umask(0o022)
    sys.path[:0] = [str(scratch / "tests/storm"), str(scratch / "tests/system")]
    import weather  # knows by then whose storm it is, and of which programs
    import siege
    kind = siege.Siege if place == "hostile" else weather.Storm
    return kind(place, scratch, out, given).run()


def prepare(place, given):
    """A scratch directory that every user can reach, with the programs."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix=f"storm-{place}-"))
    scratch.chmod(0o755)
    (scratch / "build").mkdir()
    for path in pathlib.Path(given.bin).iterdir():
        if path.is_file():
            shutil.copy(path, scratch / "build" / path.name)
    for part in ("system", "storm"):
        shutil.copytree(HERE.parent / part, scratch / "tests" / part, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "a+rX", scratch / "tests"], check=True)
    return scratch


def start(place, given):
    """One storm in a process of its own; (process id, where its output goes)."""
    more = given.fault or (given.behaviours.replace(",", "+") if place == "hostile" else "")
    name = f"{place}-{given.seed}{f'-{more}' if more else ''}"
    out = pathlib.Path(given.out or HERE.parents[1] / "build/storm") / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    pid = os.fork()
    if pid:
        return pid, out
    status = 70
    try:
        with open(out / "report", "wb") as report:
            os.dup2(report.fileno(), 1)
            os.dup2(report.fileno(), 2)
        scratch = prepare(place, given)
        if os.geteuid() == 0:
            if place == "private":
                nobody = pwd.getpwnam("nobody")
                os.chown(scratch, nobody.pw_uid, nobody.pw_gid)
                os.chown(out, nobody.pw_uid, nobody.pw_gid)
            status = namespace.run_inside(scratch, inside(place, scratch, out, given))
        else:
            status = run_storm(place, scratch, out, given)
            shutil.rmtree(scratch, ignore_errors=True)
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main():
    given = options()
    places = ("shared", "private") if given.place == "both" else (given.place,)
    if given.plan:
        for place in places:
            for event in plan.make(given.seed, given.seconds, place):
                print(place, json.dumps(event))
        return 0
    if os.geteuid() != 0:
        for place in places:
            if place != "private":
                print(f"SKIP storm.{place}: needs root")
        places = tuple(p for p in places if p == "private")
    running = {place: start(place, given) for place in places}
    bad = 0
    for place, (pid, out) in running.items():
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print((out / "report").read_text(errors="replace"), end="")
        print(f"storm: {place}: seed {given.seed}, {given.seconds:.0f} s: "
              f"{'ok' if status == 0 else 'FAILED'}; plan, events and log in {out}", flush=True)
        if status != 0:
            bad += 1
            name_failed(place, [*sys.argv[1:], "--place", place], f"exit {status}")
    passed = len(running) - bad
    for fault in FAULTS if given.controls else ():
        found = control(fault, given)
        passed, bad = passed + found, bad + (not found)
    print(f"storm: {passed} passed, {bad} failed")
    return 1 if bad else 0


def name_failed(name, arguments, reason):
    """As tests/check/parts.sh wants: the test, the command that runs it alone, why."""
    again = shlex.join([sys.executable, "-B", "tests/storm/storm.py",
                        *(word for word in arguments if word != "--controls" or name not in ("shared", "private"))])
    print(f"FAILED\t{name}\t{again}\t{reason}", flush=True)


def control(fault, given):
    """A storm that loses a message says so, or it shows nothing."""
    pid, out = start("private", argparse.Namespace(**vars(given) | {"fault": fault, "seconds": 8.0}))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    report = (out / "report").read_text(errors="replace")
    found = status == 1 and re.search("^private: FAILED lost: [1-9]", report, re.M) is not None
    print(f"storm: fault {fault}: {'found' if found else 'NOT FOUND'}; {out}", flush=True)
    if not found:
        name_failed(f"fault {fault}", sys.argv[1:], "the storm did not find it")
    return found


if __name__ == "__main__":
    sys.exit(main())
