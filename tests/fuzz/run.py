#!/usr/bin/env python3
"""Run the fuzz targets (make fuzz, make fuzz-check; tests/README.md).

make fuzz goes on from the corpora of tests/fuzz/corpus and from what earlier
runs found (build/fuzz/corpus). --check starts from the committed corpora with
a fixed seed, so that it does the same each time. What fails is kept in
build/fuzz/TARGET/ and shown. --keep puts a small choice of what was found into
the committed corpora."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests/fuzz"
BUILT = ROOT / "build/clang-fuzzer-no-link-address-undefined/fuzz"
OUT = ROOT / "build/fuzz"
CHECK_RUNS = 20000
KEEP_FILES, KEEP_BYTES = 16, 4096
# Targets that do more work an execution have fewer of them in the check.
CHECK_LESS = {"common/config": 2000, "deliver-smtp/tls": 2000,
              "qsim/scenario": 2000}
# An octet of the input stands for a word of many: more takes time alone.
MAX_LEN = {"deliver-smtp/mime": 200, "smtp/server": 300}


def targets():
    return sorted(str(p.relative_to(FUZZ).with_suffix(""))
                  for p in FUZZ.glob("*/*.c"))


def command(target, args, work):
    """The libFuzzer command: a corpus to write to only without --check."""
    seeds = FUZZ / "corpus" / target
    kept = OUT / target
    kept.mkdir(parents=True, exist_ok=True)
    grown = work / "corpus" if args.check else OUT / "corpus" / target
    grown.mkdir(parents=True, exist_ok=True)
    runs = CHECK_LESS.get(target, CHECK_RUNS) if args.check else args.runs
    options = [f"-runs={runs}", f"-max_len={MAX_LEN.get(target, 4096)}",
               "-timeout=1200",  # by the clock on the wall: not too short
               "-rss_limit_mb=2048", "-print_final_stats=1",
               f"-artifact_prefix={kept}/", "-verbosity=0"]
    if args.check:
        options.append("-seed=1")
    dictionary = FUZZ / "corpus" / (target + ".dict")
    if dictionary.exists():
        options.append(f"-dict={dictionary}")
    return [str(BUILT / target), *options, str(grown),
            *([str(seeds)] if seeds.is_dir() else [])]


def run(target, args):
    work = pathlib.Path(tempfile.mkdtemp(
        prefix="qsched-fuzz-",
        dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    began = time.monotonic()
    try:
        done = subprocess.run(
            command(target, args, work), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**os.environ, "TMPDIR": str(work)})
    finally:
        shutil.rmtree(work, ignore_errors=True)
    took = time.monotonic() - began
    count = re.search(r"number_of_executed_units: (\d+)", done.stdout)
    executed = int(count.group(1)) if count else 0
    if done.returncode != 0:
        print(done.stdout)
    print(f"fuzz: {target}: {'ok' if done.returncode == 0 else 'FAILED'}: "
          f"{executed} executions in {took:.0f} s", flush=True)
    if done.returncode != 0:
        again = f"{sys.executable} -B tests/fuzz/run.py --check --jobs 1 {target}"
        print(f"FAILED\t{target}\t{again}\texit {done.returncode}", flush=True)
    return done.returncode == 0, executed


def keep(target, _args):
    """Choose a small corpus from what was found: a set that covers most, at
    most KEEP_FILES of at most KEEP_BYTES together. Files with a name of their
    own (seed-*, crash-*) stay."""
    seeds = FUZZ / "corpus" / target
    seeds.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as merged:
        subprocess.run([str(BUILT / target), "-set_cover_merge=1",
                        "-max_len=400",
                        "-verbosity=0", merged, str(OUT / "corpus" / target),
                        str(seeds)], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for old in seeds.iterdir():
            if "-" not in old.name:
                old.unlink()
        units = sorted(pathlib.Path(merged).iterdir(),
                       key=lambda p: p.stat().st_size, reverse=True)
        left = KEEP_BYTES
        for unit in units[:KEEP_FILES]:
            left -= unit.stat().st_size
            if left >= 0:
                shutil.copyfile(unit, seeds / unit.name[:12])
    print(f"fuzz: {target}: {len(list(seeds.iterdir()))} inputs kept")
    return True, 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--runs", type=int, default=1000000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("targets", nargs="*")
    args = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda t: (keep if args.keep else run)(t, args),
                                args.targets or targets()))
    passed = sum(ok for ok, _ in results)
    print(f"fuzz: {sum(n for _, n in results)} executions")
    print(f"{passed} passed, {len(results) - passed} failed")
    sys.exit(passed != len(results))


if __name__ == "__main__":
    main()
