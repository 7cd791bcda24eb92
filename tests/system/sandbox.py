"""sandbox.py UNIT PROGRAM…: run a program under the seccomp filter that systemd
would make of SystemCallFilter= and RestrictAddressFamilies= of the unit.
systemd-analyze knows the groups, libseccomp makes the filter."""
import ctypes
import os
import re
import socket
import subprocess
import sys

ALLOW = 0x7FFF0000
ERRNO_EPERM = 0x00050000 | 1
EQUAL = 4


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int),
                ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def groups():
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter"], capture_output=True,
                          text=True, check=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        word = line.strip()
        if line.startswith("@"):
            name = word
            found[name] = []
        elif name and word and not word.startswith("#"):
            found[name].append(word)
    return found


def expand(name, known):
    calls, open_names, seen = set(), [name], set()
    while open_names:
        word = open_names.pop()
        if not word.startswith("@"):
            calls.add(word)
        elif word not in seen:
            seen.add(word)
            open_names += known[word]
    return calls


class Filter:
    def __init__(self):
        self.lib = ctypes.CDLL("libseccomp.so.2")
        self.lib.seccomp_init.restype = ctypes.c_void_p
        self.ctx = ctypes.c_void_p(self.lib.seccomp_init(ctypes.c_uint32(ERRNO_EPERM)))

    def allow(self, call, *compare):
        number = self.lib.seccomp_syscall_resolve_name(call.encode())
        if number < 0:
            return  # of another architecture
        rules = (Compare * len(compare))(*compare)
        assert self.lib.seccomp_rule_add_array(self.ctx, ctypes.c_uint32(ALLOW), number, len(compare),
                                               rules) == 0, call

    def privileges(self, none):
        """What is executed later gets no new ones, or does."""
        assert self.lib.seccomp_attr_set(self.ctx, 3, ctypes.c_uint32(none)) == 0  # SCMP_FLTATR_CTL_NNP

    def load(self):
        assert self.lib.seccomp_load(self.ctx) == 0


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        unit = f.read()
    known = groups()
    calls = expand("@default", known)
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        for word in words.removeprefix("~").split():
            calls = calls - expand(word, known) if words.startswith("~") else calls | expand(word, known)
    families = re.search(r"^RestrictAddressFamilies=(.*)$", unit, re.M).group(1).split()
    wanted = Filter()
    for call in calls - {"socket"}:
        wanted.allow(call)
    for name in families:
        wanted.allow("socket", Compare(0, EQUAL, getattr(socket, name), 0))
    wanted.privileges(bool(re.search(r"^NoNewPrivileges=yes$", unit, re.M)))
    wanted.load()
    os.execv(sys.argv[2], sys.argv[2:])


main()
