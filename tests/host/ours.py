"""Our sendmail: cases on a private instance that is stopped, so that what was
queued stays."""
import os
import pathlib
import pwd
import re
import shutil
import struct
import sys

import cases
import outcome

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from instance import AS_ROOT, BIN, Instance  # noqa: E402

NOBODY = 65534
HEAD = struct.Struct("<7Q")
STATES = {
    "": {},
    "stopped": {},
    "full": {"queue_minfree_bytes": "1024g"},
    "unwritable": {},
    "unconfigured": {},
}


def queue_file(path):
    """Envelope and content, as docs/SPOOL.md has them."""
    data = path.read_bytes()
    _, at, length, env_at, env_len, rcpt_at, rcpt_len = HEAD.unpack_from(data, len(data) - 128)
    sender_len = int.from_bytes(data[env_at + 2:env_at + 4], "little")
    sender = data[env_at + 4:env_at + 4 + sender_len]
    rcpts, records = [], data[rcpt_at:rcpt_at + rcpt_len]
    while records:
        size = int.from_bytes(records[2:4], "little")
        if records[:1] == b"R":
            rcpts.append(records[4:4 + size].decode())
        records = records[4 + size:]
    return outcome.MESSAGE(sender.decode(), rcpts, data[at:at + length])


def login():
    uid = NOBODY if AS_ROOT else os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name, cases.DOMAIN
    except KeyError:
        return f"uid{uid}", cases.DOMAIN


class Ours:
    """An instance for each state of the system that cases ask for."""

    def __init__(self, make=Instance):
        self._make = make
        self._made = {}

    def close(self):
        for instance in self._made.values():
            for path in instance.base.glob("queue*/**/"):
                os.chmod(path, 0o755)
            instance.destroy()

    def instance(self, state):
        if state not in self._made:
            self._made[state] = i = self._make(queues=1, conf=STATES[state] | {
                "mydomain": cases.DOMAIN, "myhostname": cases.DOMAIN, "message_size_limit": cases.SIZE_LIMIT,
                "user_message_rate": 0})
            # For `mailq`, and beside `sendmail` for `sendmail -bp`.
            shutil.copy(BIN / "qctl", i.dir / "qctl")
            i.start()
            i.stop()
            if state == "unwritable":
                for path in i.queue(1).glob("incoming"), i.queue(1).glob("gate/maildrop"):
                    for directory in path:
                        os.chmod(directory, 0o500)
            if state == "unconfigured":
                i.conf_file.unlink()
                (i.base / "conf").unlink()
        return self._made[state]

    def run(self, case):
        i = self.instance(case.state)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if AS_ROOT else {}
        program = i.dir / "qctl" if case.face == "mailq" else i.face(case.face)
        status, said = outcome.run(case, [case.face, *case.args], executable=program,
                                   env=i.environment(), cwd="/", **who)
        said = said.replace(str(i.dir).encode(), b"DIR")
        said = re.sub(rb"has \d+ (bytes|[KMGT]B) free", b"has N MB free", said)  # of the disk of this machine
        said = re.sub(rb"the gate is closed: .*; ", b"the gate is closed: WHY; ", said)
        messages = []
        for path in sorted(i.files("incoming", "gate/maildrop")):
            messages.append(queue_file(path))
            path.unlink()
        return outcome.of_case(case, status, said, messages, login())
