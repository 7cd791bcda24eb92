"""Debian packages of mail servers, unpacked into build/peers/root, not installed.

They come by `apt-get download` with the libraries that they need, all of the
version that this system's sources have now, so nothing of the host is used and
servers that conflict as packages lie beside each other. Lists of packages and
what was downloaded are in build/peers as well; the host's stay as they are.
"""
import fcntl
import gzip
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get("PEERS_HOME", ROOT / "build/peers"))
SERVERS = ("postfix", "exim4-daemon-light", "opensmtpd", "dovecot-core", "dovecot-lmtpd", "dovecot-submissiond",
           "libsasl2-modules", "dash", "openssl")
LIMIT = 120  # of a command of apt; what has not come by then does not come
LIBRARY = r"^ +(?:Pre)?Depends: (lib[a-z0-9.+-]*|zlib1g|gcc-\d+-base)$"


failures = []  # of this process, which does not try twice


class Unavailable(Exception):
    """What is needed cannot be had here, and why."""


def run(*command, **options):
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=LIMIT,
                              **options)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]}: no end within {LIMIT} s") from None
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no words"]
        raise Unavailable(f"{command[0]}: {words[0][:200]}")
    return done.stdout


def apt(command, *words, **options):
    """apt with lists of its own, which any user may have, and as if nothing
    were installed: what the host has may be of no source any more."""
    state = HOME / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    return run(command, "-q", "-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}/cache",
               "-o", f"Dir::State::Status={state}/status", "-o", "APT::Sandbox::User=root", *words, **options)


def closure():
    """The servers, and every library that they need."""
    told = apt("apt-cache", "depends", "--recurse", "--important", *SERVERS)
    needs = {block.split("\n", 1)[0]: re.findall(LIBRARY, block, re.M) for block in re.split(r"\n(?=[^ ])", told)}
    found, level = set(), set(SERVERS)
    while level:
        found |= level
        level = {name for package in level for name in needs.get(package, ())} - found
    return sorted(found)


def fetch(root):
    """All of it unpacked in `root`, whole or not at all."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Unavailable("no apt-get")
    fresh, archives = root.with_suffix(".new"), HOME / "archives"
    for folder in (fresh, archives):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    apt("apt-get", "update", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20")
    apt("apt-get", "download", *closure(), cwd=archives)
    for archive in sorted(archives.glob("*.deb")):
        run("dpkg", "-x", archive, fresh)
    for name in ("bin", "sbin", "lib", "lib64"):
        # Packages since Debian 13 have these below usr alone.
        if not (fresh / name).exists() and (fresh / "usr" / name).is_dir():
            (fresh / name).symlink_to(f"usr/{name}")
    shutil.rmtree(archives)
    shutil.rmtree(HOME / "apt")
    (fresh / "servers").write_text(" ".join(SERVERS))
    fresh.chmod(0o755)
    shutil.rmtree(root, ignore_errors=True)
    fresh.rename(root)


def is_whole(root):
    """It is there, and was made for the servers that are wanted now."""
    stamp = root / "servers"
    return stamp.exists() and stamp.read_text() == " ".join(SERVERS)


def unpacked():
    """The directory that has the packages; Unavailable says why not."""
    root = HOME / "root"
    HOME.mkdir(parents=True, exist_ok=True)
    with open(HOME / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not is_whole(root) and not failures:
                fetch(root)
        except Unavailable as why:
            failures.append(str(why))
    if failures:
        raise Unavailable(failures[0])
    return root


def version(package):
    """The version of an unpacked package, as its changelog says it."""
    with gzip.open(unpacked() / f"usr/share/doc/{package}/changelog.Debian.gz", "rt", encoding="utf-8") as log:
        return re.match(r"\S+ \((?:\d+:)?([^)]+)\)", log.readline()).group(1)


def command(program):
    """A program of the packages, to be run on the host with its own libraries."""
    root = unpacked()
    places = [*sorted(root.glob("lib/*-linux-*")), *sorted(root.glob("usr/lib/*-linux-*")), root / "usr/lib/postfix"]
    loader = next(root.glob("lib*/ld-linux*"))
    return [loader, "--library-path", ":".join(map(str, places)), root / program]
