"""The operations and faults of one run: plain data, drawn from a seed, that can be reduced."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from .machine.disk import DISK_FAULTS

__all__ = (
    "PLUG_INS",
    "STORES",
    "Fault",
    "Operation",
    "OperationKind",
    "Outcome",
    "Scenario",
    "Store",
    "draw",
)

Store: TypeAlias = Literal["memory", "sqlite", "session", "product", "network", "postgres"]
"""What is run: a log in memory, one in a file, a session on a log in memory, a product that records into
one, a server of one and its clients. ``postgres`` is a real server, on real time: see ``run_on_postgres``."""

STORES: Final[tuple[Store, ...]] = ("memory", "sqlite", "session", "product", "network")

PLUG_INS: Final = ("hook", "on_update", "on_stop", "observe", "attend", "consumer", "progress")
"""The plug-ins of a product that may raise: the redaction hook, two callbacks, two scorers (one that
only computes and one that awaits), a consumer, the progress display."""

OperationKind: TypeAlias = Literal[
    "append",
    "other",
    "record",
    "repeat",
    "expect",
    "stale",
    "withdraw",
    "advance",
    "conflict",
    "inherit",
    "relay",
    "measure",
    "close",
    "feedback",
    "read",
    "follow",
    "tap",
    "copy",
    "reader",
    "lease",
    "derive",
    "wrong",
    "forget",
    "vacuum",
    "verify",
    "fork",
    "restart",
]
"""``append``: some events. ``other``: by another log on the same file.
``record``: a person says some things, by a recorder of this process or another. ``fork``: a fork of the
process tries to use the log. ``repeat``: an earlier append once more, by its ids. ``expect``: at the version
that is read first. ``stale``: at a version that does not hold. ``withdraw``: some
appends, of which one is cancelled after some steps. ``advance``: with a checkpoint. ``conflict``: the ids
of an earlier append with other contents. ``inherit``: a new session that is a fork. ``relay``: a consumer writes to two
sessions about each record. ``follow``, ``tap``, ``copy``: from here on, to the end of the process. ``reader``:
a follower with a checkpoint resumes at the last commit. ``lease``: two compete for names.
``derive``: a row is kept of a session. ``wrong``: what no log takes. ``measure``: to a scorer's stream. ``close``: the session's end. ``feedback``: what may follow it. ``restart``: the log is
closed and opened again."""

_WEIGHTS: Final[dict[OperationKind, int]] = {
    "append": 10,
    "other": 2,
    "record": 3,
    "repeat": 4,
    "expect": 4,
    "stale": 2,
    "withdraw": 2,
    "advance": 3,
    "conflict": 3,
    "inherit": 2,
    "relay": 2,
    "measure": 3,
    "close": 2,
    "feedback": 2,
    "read": 3,
    "follow": 6,
    "tap": 2,
    "copy": 2,
    "reader": 4,
    "lease": 1,
    "derive": 2,
    "wrong": 1,
    "forget": 2,
    "vacuum": 1,
    "verify": 1,
    "fork": 1,
    "restart": 2,
}


_POSTED: Final[dict[OperationKind, int]] = {
    "append": 8,
    "expect": 3,
    "measure": 2,
    "close": 1,
    "read": 3,
    "follow": 3,
}
"""What clients of a server do."""

_MANNERS: Final = ("half", "twice", "left", "late", "mute", "storm")


class Outcome(NamedTuple):
    """How a run went: what does not hold, empty where all does; what happened in it; its steps."""

    failure: str
    happened: tuple[str, ...]
    steps: int


class Operation(msgspec.Struct, frozen=True):
    """One thing to do.

    Attributes:
        number: the number of the operation in its run; names what it writes.
        kind: what.
        worker: the task that does it, after those of its own before it.
        session: the session that it is about.
        size: events that are appended.
        draw: all else that is left to chance.
    """

    number: int
    kind: OperationKind
    worker: int
    session: int
    size: int
    draw: int


class Fault(msgspec.Struct, frozen=True):
    """One thing that goes wrong.

    Attributes:
        kind: one of ``DISK_FAULTS``, at a number of disk operations; ``cancel`` a worker or ``kill`` the
            process at a number of steps of the loop; ``hook``, ``policy``, ``scorer``: the redaction
            hook, a policy, a scorer raises at a number of its calls; ``clock``: the clock jumps at a
            number of its readings; ``cut``, ``vanish``, ``delay``: a connection, at a number of
            deliveries of the network, when ``stop`` stops the server; ``half``, ``twice``, ``left``,
            ``late``, ``mute``, ``storm``: how a request is made, by its number; ``backend``, ``server``: kills
            connections of a PostgreSQL server, or the server, at a number of drafts; ``pause``: the threads of a process stand still from a number of
            steps on.
        at: the number, from 1.
        draw: all else that is left to chance.
    """

    kind: str
    at: int
    draw: int


class Scenario(msgspec.Struct, frozen=True):
    """A run, before it is run.

    Attributes:
        store: what is run.
        seed: what it was drawn from; when threads go on and what survives a loss of power, too.
        operations: what is done.
        faults: what goes wrong.
    """

    store: Store
    seed: int
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]

    def only(self, operations: Collection[int], faults: Collection[int]) -> Scenario:
        """The scenario with some of its operations, by number, and some of its faults, by index."""
        return msgspec.structs.replace(
            self,
            operations=tuple(each for each in self.operations if each.number in operations),
            faults=tuple(each for at, each in enumerate(self.faults) if at in faults),
        )


def draw(store: Store, seed: int) -> Scenario:
    """The scenario of a seed."""
    random = Random(f"{store} {seed}")
    if store == "session":
        return Scenario(store, seed, (), tuple(_of_session(random) for _ in range(3)))
    if store == "network":
        return _of_network(seed, random)
    if store == "product":
        return Scenario(store, seed, (), tuple(_of_product(random) for _ in range(3)))
    count = random.choice((2, 3, 3, 5, 8, 12) if store == "memory" else (3, 5, 8, 12))
    workers, sessions = random.randint(1, 4), random.randint(1, 3)
    drawn = _kinds(random)
    kinds = random.choices(drawn, [_WEIGHTS[kind] for kind in drawn], k=count)
    operations = tuple(
        Operation(
            number,
            kind,
            random.randrange(workers),
            random.randrange(sessions),
            random.choice((1, 1, 2, 3, 9)),
            random.randrange(1 << 30),
        )
        for number, kind in enumerate(kinds)
    )
    faults = [_fault(store, random, count) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    if store == "sqlite" and random.random() < 0.15:
        # A loss of power soon after a failure shows what the failure left behind.
        at = random.randint(1, 14 * count + 12)
        kind = random.choice(("sync", "sync", "sync", "write", "torn", "full", "lie", "slow"))
        faults += [Fault(kind, at + n, 0) for n in range(3 if kind == "lie" else 1)]
        faults.append(Fault("power", faults[-1].at + random.randint(1, 3), 0))
    return Scenario(store, seed, operations, tuple(faults))


_FOCUS: Final[tuple[tuple[OperationKind, ...], ...]] = (
    ("append", "follow", "forget", "inherit", "copy"),
    ("append", "repeat", "conflict", "advance", "other"),
    ("append", "reader", "relay", "restart", "record"),
    ("append", "derive", "forget", "lease", "tap"),
    ("append", "other", "follow", "tap", "withdraw"),
)
"""Operations that have to do with each other: runs of them alone find what is rare among all."""


def _kinds(random: Random) -> list[OperationKind]:
    """The kinds of operations of one run: all, some by chance, or some that have to do with each other."""
    chance = random.random()
    if chance < 0.4:
        return list(_WEIGHTS)
    if chance < 0.7:
        return list(random.choice(_FOCUS))
    return ["append", *random.sample([kind for kind in _WEIGHTS if kind != "append"], 4)]


def _of_network(seed: int, random: Random) -> Scenario:
    count = random.choice((2, 4, 7))
    workers = random.randint(1, 3)
    kinds = random.choices(list(_POSTED), list(_POSTED.values()), k=count)
    operations = tuple(
        Operation(
            number,
            kind,
            random.randrange(workers),
            random.randrange(2),
            random.choice((1, 1, 2, 5)),
            random.randrange(1 << 30),
        )
        for number, kind in enumerate(kinds)
    )
    faults = []
    for _ in range(random.choice((0, 1, 2, 3, 4))):
        kind = random.choice(("cut", "cut", "vanish", "delay", "stop", *_MANNERS))
        most = count if kind in _MANNERS else 8 * count
        faults.append(Fault(kind, random.randint(1, most), random.randrange(1 << 30)))
    return Scenario("network", seed, operations, tuple(faults))


def _of_product(random: Random) -> Fault:
    kind = random.choice((*PLUG_INS, "cancel"))
    most = {"progress": 1, "cancel": 120, "on_stop": 2, "consumer": 8}.get(kind, 20)
    return Fault(kind, random.randint(1, most), random.randrange(1 << 30))


def _of_session(random: Random) -> Fault:
    kind = random.choice(("kill", "kill", "cancel", "policy", "scorer"))
    most = 400 if kind in ("kill", "cancel") else 15
    return Fault(kind, random.randint(1, most), random.randrange(1 << 30))


def _fault(store: Store, random: Random, count: int) -> Fault:
    if store == "postgres":
        return Fault(
            random.choice(("backend", "backend", "server", "cancel")),
            random.randint(1, 2 * count),
            random.randrange(1 << 30),
        )
    kinds = ["cancel", "cancel", "cancel", "hook", "clock"]
    if store == "sqlite":
        kinds += ["kill", "kill", "pause", *DISK_FAULTS, "power", "power"]
    kind = random.choice(kinds)
    most = {
        "hook": 3 * count,
        "clock": count,
        "cancel": 12 * count,
        "kill": 25 * count,
        "pause": 15 * count,
    }.get(kind, 14 * count + 12)
    if store == "memory":
        most = min(most, 5 * count)
    return Fault(kind, random.randint(1, most), random.randrange(1 << 30))
