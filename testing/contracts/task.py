"""Checks the contract of tasks: what holds of any task that results can be compared on.

It needs of a task, beyond what a run does: ``best_output(instance, seed)``, the best reachable output, and
``scorers(opened)``, which measure a recorded session again. A `duolog.tasks.kit` task has both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Protocol

import msgspec

from ...engine import codec
from ...engine.events import (
    JSON,
    MessageSent,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.records import TRACE, Record
from ...engine.scorers.observing import Observer
from ...engine.scorers.protocol import Scorer
from ...engine.session.runner import Session
from ...engine.session.view import Visibility
from ...engine.task import NOBODY, Cell, Setting, Task
from ...tasks.kit import BestOutput
from ..folds import by, records_of
from ..sessions import Played, played
from ..tools import require

__all__ = ("CheckedTask", "check_task")

_CLOSE = 1e-9
_TELLING = 3
"""The least number of words at which a copied text of the profile is recognised."""


class CheckedTask(Task, Protocol):
    """A task that states the best utility of its instances, and measures its recorded sessions again."""

    def best_output(self, instance: str, seed: int) -> BestOutput:
        """The best utility that an instance allows, and an output that reaches it."""
        ...

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """The scorers that can measure a recorded session again without a model."""
        ...


async def check_task(task: CheckedTask, *, seed: int = 1, instances: int = 3) -> None:
    """Checks that a task keeps its contract, by playing a few of its sessions on rules.

    - Instances are the same each time, and differ; the best output of each is worth what it claims, and
      nobody reaches more while goals stay as they were.
    - Each session records the key of its problem, computed from the instance: it is the same whoever plays and
      whatever the session draws, and other instances have other keys, those of another seed too.
    - Utility is in [0, 1], has named parts, and is measured in every session; measured again, it is
      the same.
    - The hidden profile is in the human's view alone: nothing that an agent sees copies it before the
      human has said it.
    - An agent knows the human by text alone: made for another instance, with another hidden profile, it
      does the same in the same session.
    - One cell is one session, byte for byte.
    - Every agent plays every person; an agent works alone, and so does a human.

    Args:
        task: the task.
        seed: the seed of its instances.
        instances: how many of them to look at; at least two.

    Raises:
        AssertionError: a promise is broken; says which.
    """
    names = task.instances(instances, seed)
    require(len(names) >= 2, f"a check needs two instances, and {task.name} has {len(names)}")
    require(task.instances(instances, seed) == names, "instances have the same names each time")
    require(len(set(names)) == len(names), "instances have names of their own")
    pairs, automated, unaided = _kinds(task, names[0], seed)
    require(bool(automated), "there is no agent that works without a human: the automated baseline")
    require(bool(unaided), "there is no human who works without an agent: the other baseline")
    require(bool(pairs), "there is no agent that works with a human")
    _check_instances(task, names, seed)
    _check_problems(task, names, seed, [*pairs, *((agent, NOBODY) for agent in automated)])
    for name in names:
        await _check_best_output(task, name, seed)
    first = [Cell(agent=a, user=u, instance=names[0], seed=seed) for a, u in pairs]
    users = list(task.users)[:1]
    alone = [
        *(
            Cell(agent=agent, user=NOBODY, instance=name, seed=seed)
            for agent in automated
            for name in names
        ),
        *(
            Cell(agent=agent, user=user, instance=names[0], seed=seed)
            for agent in unaided
            for user in users
        ),
    ]
    more = [
        Cell(agent=agent, user=users[0], instance=name, seed=seed)
        for agent in dict.fromkeys(agent for agent, _ in pairs)
        for name in names[1:]
    ]
    by_text = [cell for cell in first if cell.user in users]
    for cell in (*first, *alone, *more):
        one = await _check_session(task, cell)
        if cell in by_text:
            await _check_by_text_alone(task, cell, names[1], one)


def _kinds(
    task: CheckedTask, name: str, seed: int
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The pairs of agents and users, the agents that work alone, and the kinds without an agent."""
    user = next(iter(task.users), NOBODY)
    automated = [agent for agent in task.agents if task.automated(agent)]
    unaided: list[str] = []
    collaborating: list[str] = []
    for agent in task.agents:
        if agent in automated:
            continue
        opened = _session(task, Cell(agent=agent, user=user, instance=name, seed=seed)).opened
        (collaborating if _agents(opened) else unaided).append(agent)
    pairs = [(agent, user) for agent in collaborating for user in task.users]
    return pairs, automated, unaided


def _session(task: CheckedTask, cell: Cell) -> Session:
    return task.session(cell, Setting())


def _agents(opened: SessionOpened) -> list[str]:
    return [one.name for one in opened.participants if one.role == "agent"]


def _check_instances(task: CheckedTask, names: Sequence[str], seed: int) -> None:
    agent = next(agent for agent in task.agents if not task.automated(agent))
    user = next(iter(task.users))

    def opened(name: str, seed: int) -> SessionOpened:
        return _session(task, Cell(agent=agent, user=user, instance=name, seed=seed)).opened

    seen = []
    for name in names:
        require(opened(name, seed) == opened(name, seed), f"instance {name} is the same each time")
        seen.append(codec.digest(msgspec.to_builtins(opened(name, seed).private)))
    require(len(set(seen)) > 1, "instances differ in what is hidden in them")


def _check_problems(
    task: CheckedTask, names: Sequence[str], seed: int, players: Sequence[tuple[str, str]]
) -> None:
    """Sessions have one problem key if, and only if, they pose the same problem."""
    agent, user = players[0]
    keys: dict[str, str] = {}  # the problem of each key
    for at in (seed, seed + 1):
        for name in task.instances(len(names), at):
            cell = Cell(agent=agent, user=user, instance=name, seed=at)
            opened = _session(task, cell).opened
            where = f"instance {name} of seed {at}"
            key = opened.problem
            require(bool(key), f"{where} has no problem key: pairs and clusters go by it")
            assert key is not None
            posed = codec.digest(msgspec.to_builtins([opened.request, opened.private]))
            require(
                keys.setdefault(key, posed) == posed,
                f"{where} has the problem key of another instance, {key}",
            )
    for agent, user in players:
        for repeat in (1, 2):
            cell = Cell(agent=agent, user=user, instance=names[0], seed=seed, repeat=repeat)
            found = _session(task, cell).opened.problem
            require(
                found in keys and found == next(iter(keys)),
                f"{agent} with {user or 'nobody'}: the problem key of instance {names[0]} is "
                f"{next(iter(keys))} whoever plays, and not {found}",
            )


async def _check_best_output(task: CheckedTask, name: str, seed: int) -> None:
    """The best output of an instance has the utility that it claims."""
    best_known = task.best_output(name, seed)
    where = f"the best output of instance {name}"
    require(
        0.0 < best_known.value <= 1.0, f"{where} has a value in (0, 1], not {best_known.value!r}"
    )
    if best_known.content is None:
        return
    agent = next(agent for agent in task.agents if not task.automated(agent))
    cell = Cell(agent=agent, user=next(iter(task.users)), instance=name, seed=seed)
    opened = _session(task, cell).opened
    human = next(one.name for one in opened.participants if one.role == "human")
    content = best_known.content
    taken = SnapshotTaken(content=content, digest=codec.digest(content))
    trace = records_of(opened, by("human", taken, actor=human))
    values = [score.value for score in await _measured(task, opened, trace)]
    best = max((value for value in values if value is not None), default=None)
    require(
        best is not None and abs(best - best_known.value) < _CLOSE,
        f"{where} says that it is worth {best_known.value:g}, and is measured as {best}",
    )


async def _measured(
    task: CheckedTask, opened: SessionOpened, trace: Sequence[Record]
) -> list[UtilityScored]:
    found = []
    for scorer in task.scorers(opened):
        session = Observer(scorer.begin(trace[0].session))
        for record in trace:
            found += [measurement.event for measurement in await session.observe(record)]
    return [event for event in found if isinstance(event, UtilityScored)]


async def _check_session(task: CheckedTask, cell: Cell) -> Played:
    """One session: it runs, twice alike; its scores are valid; private information stays private."""
    who = f"{cell.agent} with {cell.user} on instance {cell.instance}"
    one = await _played(_session(task, cell), who)
    opened = one.trace[0].event
    assert isinstance(opened, SessionOpened)
    again = await _played(_session(task, cell), who)
    require(again.streams == one.streams, f"{who}: one cell is one session, byte for byte")
    scores = [
        record.event
        for stream, records in one.streams.items()
        if stream != TRACE
        for record in records
        if isinstance(record.event, UtilityScored)
    ]
    values = [score.value for score in scores if score.value is not None]
    require(bool(values), f"{who}: utility is measured in every session, and was in none of it")
    for score in scores:
        require(
            score.value is None or 0.0 <= score.value <= 1.0,
            f"{who}: utility is in [0, 1], not {score.value!r}",
        )
        require(
            score.value is None or bool(score.parts),
            f"{who}: a utility of {score.value} has no parts",
        )
    measured = await _measured(task, opened, one.trace)
    require(
        [_plain(score) for score in measured] == [_plain(score) for score in scores],
        f"{who}: measured again, the utility is the same",
    )
    best = task.best_output(cell.instance, cell.seed).value
    changed = any(record.kind == "ProfileChanged" for record in one.trace)
    require(
        changed or max(values) <= best + _CLOSE,
        f"{who}: they reached {max(values):g}, and the best output says that {best:g} is the best",
    )
    for agent in _agents(opened):
        _check_hidden(one.trace, agent, opened, who)
    return one


def _plain(score: UtilityScored) -> tuple[object, ...]:
    return score.snapshot, score.round, score.value, dict(score.parts), score.missing


async def _played(session: Session, who: str) -> Played:
    try:
        return await played(session)
    except AssertionError as error:
        raise AssertionError(f"{who}: {error}") from error


def _check_hidden(trace: Sequence[Record], agent: str, opened: SessionOpened, who: str) -> None:
    """Nothing that the agent sees copies a text of the profile before the human has said it."""
    humans = {one.name for one in opened.participants if one.role == "human"}
    secrets = {text for owner in humans for text in _texts(opened.private.get(owner))}
    visible = Visibility(agent)
    for record in trace:
        seen = visible.see(record)
        if seen is None:
            continue
        if isinstance(seen.event, MessageSent) and seen.actor in humans:
            said = seen.event.text.casefold()
            secrets = {secret for secret in secrets if secret not in said}
            continue
        body = (seen.body or b"").decode().casefold()
        leak = next((secret for secret in secrets if secret in body), None)
        require(
            leak is None,
            f"{who}: {agent} sees {leak!r} of the hidden profile in record {seen.version} "
            f"({seen.kind}), and the human has not said it",
        )


def _texts(private: JSON) -> Iterator[str]:
    """The texts of a profile that are too long to be written by chance, as JSON, in lower case."""
    if isinstance(private, str):
        if len(private.split()) >= _TELLING:
            yield json.dumps(private, ensure_ascii=False)[1:-1].casefold()
    elif isinstance(private, Mapping):
        for part in private.values():
            yield from _texts(part)
    elif isinstance(private, Sequence):
        for part in private:
            yield from _texts(part)


async def _check_by_text_alone(task: CheckedTask, cell: Cell, other: str, one: Played) -> None:
    """An agent made for another instance does the same in the same session.

    The opening names the other instance too, so that nobody can look the profile up by its name. Scorers would
    do that, so they are left out, with the rule by which they stop a session.
    """
    who = f"{cell.agent} with {cell.user} on instance {cell.instance}"

    def bare(cell: Cell) -> Session:
        return msgspec.structs.replace(_session(task, cell), scorers=(), stop=None)

    session, elsewhere = bare(cell), bare(msgspec.structs.replace(cell, instance=other))
    agents = {p.participant.name: p for p in elsewhere.players if p.participant.role == "agent"}
    swapped = msgspec.structs.replace(
        session,
        players=tuple(agents.get(p.participant.name, p) for p in session.players),
        opened=msgspec.structs.replace(
            session.opened, instance=elsewhere.opened.instance, config=elsewhere.opened.config
        ),
    )
    stops = _session(task, cell).stop is not None
    mine = (await _played(bare(cell), who) if stops else one).trace[1:]
    theirs = (await _played(swapped, who)).trace[1:]
    for its, another in zip_longest(mine, theirs):
        record = its or another
        require(
            its == another,
            f"{who}: in record {record.version} ({record.kind} of {record.actor}) it matters for which "
            "instance the agent was made: it knows what nobody has said",
        )
