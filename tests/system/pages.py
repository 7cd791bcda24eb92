"""The page of the supervisor (common/ipc/page.h), as other programs read it."""
import struct

ROW = struct.Struct("=8I2qiI96s")
SCHED = struct.Struct("=2I48x4IQ6I2Qq160s")
CONF_ERROR_SIZE = 256  # the field behind the rows
STATES = ("none", "open", "closing", "disabled", "quarantined")


def sched(i):
    """Its fields and its rows."""
    with open(f"{i.shm}/{i.name}.qscheduler", "rb") as f:
        data = f.read()
    fields = dict(zip("""qcount qconf threshold queue_start queue_max dynamic bad_requests answer_next
        qmails_uid queue_count mean_load held_count spare held_until changes change_wall change""".split(),
                      SCHED.unpack_from(data)))
    rows = {}
    end = len(data) - CONF_ERROR_SIZE
    for at in range(end - 256 * ROW.size, end, ROW.size):
        row = ROW.unpack_from(data, at)
        if row[0]:
            rows[row[0]] = {"state": STATES[row[1]], "generation": row[2], "flags": row[5],
                            "load": row[6], "reason": row[12].split(b"\0")[0].decode()}
    return fields, rows


def states(i, state="open"):
    return [n for n, row in sched(i)[1].items() if row["state"] == state]
