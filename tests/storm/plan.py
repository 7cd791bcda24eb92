"""The events of a storm: all of them, with their times and arguments, from one
seed. Which process or file an argument meets depends on what is there then."""
import random

PROGRAMS = ("queue-send", "todo-proc", "deliver-local", "deliver-smtp", "delivery", "submitter", "qscheduler")

DAMAGE_SHM = ("empty", "short", "noise", "zeros", "gone")
DAMAGE_MQ = ("gone", "full", "drained")
FOREIGN = ("garbage", "fifo", "link", "directory", "sparse", "long", "copy")
STATES = ("gate/maildrop", "incoming", "active", "deferred", "hold", "defer", "bounce", "lock")
WRONG = ("unknown key", "bad number", "empty", "gone", "directory", "routing", "programs")
SITES = ("ok", "slow", "temp", "perm")

# name: (weight, where it can be, longest seconds until its end or None)
EVENTS = {
    "kill": (30, "both", None),
    "kill-pair": (4, "both", None),
    "stop": (12, "both", 7.0),
    "reload": (5, "both", None),
    "wrong": (3, "both", 4.0),
    "flush": (4, "both", None),
    "setqload": (12, "both", None),
    "count": (8, "both", None),
    "shm": (5, "both", None),
    "mq": (4, "both", None),
    "foreign": (6, "both", None),
    "fill": (4, "both", 4.0),
    "inodes": (2, "both", 3.0),
    "mailfull": (2, "shared", 3.0),
    "freeze": (3, "shared", 6.0),
    "hang": (3, "shared", 8.0),
    "halt": (2, "both", 3.0),
    "site": (5, "both", 4.0),
    "hurry": (4, "both", 3.0),
    "hostile": (6, "shared", 5.0),
}


def arguments(dice, name):
    """Everything that can be decided before the storm."""
    chance = dice.random()
    if name == "kill":
        return {"program": dice.choice(PROGRAMS), "chance": chance}
    if name == "kill-pair":
        return {"with": dice.choice(PROGRAMS[:4]), "chance": chance, "stopped": dice.random() < 0.5}
    if name == "stop":
        return {"program": dice.choice(PROGRAMS[:5] + PROGRAMS[6:]), "chance": chance}
    if name == "wrong":
        return {"how": dice.choice(WRONG)}
    if name == "reload":
        return {"slots": dice.choice((5, 10, 20)), "backoff": dice.choice((1, 2))}
    if name == "setqload":
        return {"args": setqload(dice)}
    if name == "count":
        return {"count": dice.randrange(0, 9)}
    if name == "shm":
        return {"how": dice.choice(DAMAGE_SHM), "chance": chance, "seed": dice.getrandbits(32)}
    if name == "mq":
        return {"how": dice.choice(DAMAGE_MQ), "chance": chance}
    if name == "foreign":
        return {"state": dice.choice(STATES), "how": dice.choice(FOREIGN), "chance": chance,
                "count": dice.choice((1, 1, 5, 50))}
    if name in ("fill", "inodes"):
        return {"chance": chance}
    if name == "site":
        return {"site": dice.choice(SITES)}
    if name == "hostile":
        return {"user": dice.randrange(8), "chance": chance}
    return {}


def setqload(dice):
    queue = str(dice.choice((1, 2, 3, 4, 5, 6, 7, 4095)))
    return dice.choice((
        ("--count", str(dice.randrange(2, 7)), "--for", "1s"),
        ("-q", queue, "--for", "2s", str(dice.randrange(101))),
        ("-q", queue, "--for", "1s", f"{dice.randrange(50)}/50", "2/10"),
        ("--clear",), ("--clear", "-q", queue), ("--list",), ("--list", "--json"),
        ("--disable", "-q", queue, "--for", "2s", "--reason", "a storm"),
        ("--disable", "-q", queue), ("--enable", "-q", queue), ("--enable", "-q", queue)))


def make(seed, seconds, place, pace=0.7, without=()):
    """A list of (time, name, arguments); what has an end has an event of its
    own for it, before the storm is over."""
    dice = random.Random(f"{seed} plan {place}")
    names = [n for n, (_, where, _) in EVENTS.items() if where in ("both", place) and n not in without]
    weights = [EVENTS[n][0] for n in names]
    plan, at, busy = [], 1.0, {}
    while True:
        at += dice.expovariate(1 / pace)
        name = dice.choices(names, weights)[0]
        args = arguments(dice, name)
        longest = EVENTS[name][2]
        lasts = 0 if longest is None else dice.uniform(0.1, longest)
        if at > seconds - 0.5:
            break
        if at + lasts > seconds - 0.3:
            continue
        if longest is not None and name not in ("stop", "hostile") and at < busy.get(name, 0):
            continue  # one of a kind at a time
        if longest is not None:
            args["id"] = len(plan)
        plan.append((round(at, 3), name, args))
        if longest is not None:
            busy[name] = at + lasts + 0.3
            plan.append((round(at + lasts, 3), f"{name}-over", args))
    return sorted(plan, key=lambda event: event[0])
