"""Checks the contract of scorers, for the scorers of Duolog and of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from ...engine import codec
from ...engine.events import ProgressRated, ScorerFailed, UtilityScored
from ...engine.records import TRACE, Record
from ...engine.scorers.observing import WAITED, Observer, drive
from ...engine.scorers.protocol import Cost, Measurement, Scorer
from ...engine.session.actors import playing
from ..actors import Improviser, agent, human
from ..sessions import Workshop, a_session, played
from ..tools import require

__all__ = ("check_scorer",)

_FEW = 3


async def check_scorer(scorer: Scorer, *traces: Sequence[Record]) -> None:
    """Checks that a scorer keeps its contract.

    It gives the same measurements for the same trace each time, whatever other sessions it scores
    meanwhile; each has an identity of its own and the scorer's name; utilities are in [0, 1] and
    ratings in 1..5, or missing with a reason; unknown events and erased sessions raise no error.
    A ``RoundScorer`` is handed the rounds that close. One that says what a record takes keeps to it.

    Args:
        scorer: the scorer.
        traces: the traces of sessions to check it on, each from its opening on. By default a few
            random ones, which mean little to most tasks: better give your own.

    Raises:
        AssertionError: a promise is broken; says which.
    """
    ref = scorer.ref
    require(bool(ref.name and ref.version), "a scorer has a name and a version")
    require(scorer.ref == ref, "a scorer's identity does not change")
    tried = list(traces) or [await _improvised(seed) for seed in range(_FEW)]
    alone = [await _measure(Observer(scorer.begin(trace[0].session)), trace) for trace in tried]
    for trace, measured in zip(tried, alone, strict=True):
        again = await _measure(Observer(scorer.begin(trace[0].session)), trace)
        require(again == measured, "a trace measured twice gives the same measurements")
        _check_identities(measured)
        for version, measurement in measured:
            _check_measurement(scorer, trace[:version], measurement)
        await _bear(scorer, _with_unknown(trace), "events that it does not know")
        await _bear(scorer, _forgotten(trace), "a session that was forgotten")
    require(
        await _together(scorer, tried) == alone,
        "sessions measured at the same time do not affect each other",
    )


async def _improvised(seed: int) -> list[Record]:
    actions = ("look", "search", "build", "fumble")
    session = a_session(
        human(playing(Improviser(20, actions))),
        agent(playing(Improviser(20, actions))),
        id=f"improvised-{seed}",
        seed=seed,
        environment=Workshop(),
        request="Anything.",
    )
    return (await played(session)).trace


async def _measure(session: Observer, trace: Sequence[Record]) -> list[tuple[int, Measurement]]:
    """The measurements of a scorer for a trace, each with the version after which it came."""
    return [(r.version, found) for r in trace for found in await _observe(session, r)]


async def _observe(session: Observer, record: Record) -> Sequence[Measurement]:
    """A scorer's measurements at a record; a scorer that never waits is driven as in a thread."""
    cost = session.cost(record)
    require(cost in get_args(Cost), f"a scorer is quick, computes or waits: {cost!r}")
    if cost == "waits":
        return await session.observe(record)
    try:
        return drive(session.observe(record))
    except RuntimeError as error:
        require(str(error) != WAITED, f"a scorer that {cost!r} is said of awaits nothing: {record}")
        raise


async def _bear(scorer: Scorer, trace: Sequence[Record], what: str) -> None:
    try:
        await _measure(Observer(scorer.begin(trace[0].session)), trace)
    except Exception as error:
        raise AssertionError(f"a scorer must accept {what}, and not raise {error!r}") from error


async def _together(
    scorer: Scorer, traces: Sequence[Sequence[Record]]
) -> list[list[tuple[int, Measurement]]]:
    """The same for several traces, a record of each in turn."""
    sessions = [Observer(scorer.begin(trace[0].session)) for trace in traces]
    measured: list[list[tuple[int, Measurement]]] = [[] for _ in traces]
    for step in range(max(map(len, traces))):
        for session, trace, found in zip(sessions, traces, measured, strict=True):
            found += await _measure(session, trace[step : step + 1])
    return measured


def _check_identities(measured: Sequence[tuple[int, Measurement]]) -> None:
    names = [of for _, (_, of) in measured]
    require(all(names), "each measurement says what it is of")
    twice = {of for of in names if names.count(of) > 1}
    require(not twice, f"a session is measured once in each respect, not twice in {twice}")


def _check_measurement(scorer: Scorer, trace: Sequence[Record], measured: Measurement) -> None:
    event = measured.event
    kind, schema = codec.kind_of(event)
    back = codec.decode_body(kind, schema, codec.encode_body(event))
    require(back == event, f"a measurement can be written and read: {event}")
    ref = getattr(event, "scorer", scorer.ref)
    require(ref == scorer.ref, f"a measurement carries its scorer's name: {event}")
    require(not isinstance(event, ScorerFailed), "a scorer that fails raises")
    if isinstance(event, UtilityScored):
        _check_utility(trace, event)
    elif isinstance(event, ProgressRated):
        require(event.round >= 1, f"rounds are numbered from 1: {event}")
        if event.rating is None:
            require(bool(event.missing), f"a missing rating has its reason: {event}")
        else:
            require(1 <= event.rating <= 5, f"a rating is 1 to 5: {event}")


def _check_utility(trace: Sequence[Record], event: UtilityScored) -> None:
    parts: Mapping[str, float | None] = {**event.parts, "the value": event.value}
    for name, part in parts.items():
        require(part is None or 0.0 <= part <= 1.0, f"{name} is in [0, 1]: {event}")
    require(
        event.value is not None or bool(event.missing), f"a missing value has a reason: {event}"
    )
    require(
        (event.snapshot is None) != (event.round is None),
        f"a utility is a snapshot's or a round's: {event}",
    )
    if event.snapshot is not None:
        taken = {record.version for record in trace if record.kind == "SnapshotTaken"}
        require(event.snapshot in taken, f"what is scored is a snapshot of the trace: {event}")


def _with_unknown(trace: Sequence[Record]) -> list[Record]:
    """The trace with an event of an unknown kind in place of each note."""
    strange = {"kind": "FromTheFuture", "body": b'{"kind":"FromTheFuture"}', "_event": None}
    return [
        msgspec.structs.replace(record, **strange) if record.kind == "NoteTaken" else record
        for record in trace
        if record.stream == TRACE
    ]


def _forgotten(trace: Sequence[Record]) -> list[Record]:
    return [msgspec.structs.replace(record, body=None, _event=None) for record in trace]
