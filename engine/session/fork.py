"""Forks: a session that takes over the beginning of another, and continues from there.

A fork copies the beginning, with the same events, actors, times and versions, under a new opening
that names the origin. It copies the measurements too. Then the origin's players execute the
beginning again against the record, as on resuming, so that players who continue have their own
state at the cut. With the same players and seed, the fork continues like the origin, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from .. import codec
from ..errors import InvalidInput
from ..events import (
    ActionResolved,
    Event,
    Origin,
    ScorerFailed,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    Unknown,
    UtilityScored,
)
from ..records import TRACE, Draft, Record
from ..rounds import RoundProjector
from ..scorers.protocol import Scorer, stream_of
from ..text import quantity
from .inheritance import Inheritance, Phase
from .resume import check_opening
from .runner import Session

__all__ = ("end_before_round", "fork", "last_act_of_round")


def end_before_round(trace: Sequence[Record], number: int) -> int:
    """The trace version after which a round begins. Fork there to play the round again.

    If a human decides on a rating together with the act that opens the round, the rating comes after
    this version.

    Args:
        trace: the records of the origin's trace, in order.
        number: the number of the round, from 2; only the opening comes before round 1.

    Raises:
        InvalidInput: there is no such round.
    """
    projector = RoundProjector()
    for index, record in enumerate(trace):
        projector.feed(record)
        if projector.number == number and number > 1:
            while trace[index - 1].kind == "ProgressRated" and (
                trace[index - 1].actor == record.actor
                and trace[index - 1].time == record.time
                and trace[index - 1].seen == record.seen
            ):
                index -= 1
            return trace[index].version - 1
    rounds = quantity(projector.number, "round")
    raise InvalidInput(
        f"cannot fork at round {number}: the session has {rounds}, and the "
        "first that can be forked is round 2"
    )


def last_act_of_round(trace: Sequence[Record], number: int) -> int:
    """The trace version of the last act of a round. Fork there to let the human decide again how to
    continue after the round.

    Raises:
        InvalidInput: there is no such round, or it does not contain an act.
    """
    projector = RoundProjector()
    version: int | None = None
    for record in trace:
        projector.feed(record)
        if projector.number > number:
            break
        if projector.number == number:
            version = projector.current.last_act
    if version is None:
        raise InvalidInput(f"no act in round {number}")
    return version


def fork(
    session: Session,
    origin: Sequence[Record],
    version: int,
    *,
    past: Session | None = None,
    from_view: bool = False,
) -> Session:
    """Makes a session that continues from some version of another session's trace.

    For example, the same session from its second round on, with another seed::

        from duolog.engine.session.fork import end_before_round

        records = [record async for record in log.read_all(session=session.id)]
        trace = [record for record in records if record.stream == "trace"]
        opened = msgspec.structs.replace(session.opened, seed=2)
        other = msgspec.structs.replace(session, opened=opened)
        forked = duolog.fork(other, records, end_before_round(trace, 2))
        result = await duolog.run_session(log, forked)

    Participants that are the same as in the origin continue, with the state and the pending
    decision that they had at the cut. Others take over there, from their view of the trace. Another
    seed applies from the cut.

    Args:
        session: the continuation: players, seed, limits, scorers. Its id is replaced.
        origin: the origin's records, in order: its whole trace, and its measurements. Missing
            measurements are made again.
        version: the last trace version that is inherited, at least 2.
        past: the origin as it was run, or its fork as ``fork`` made it; needed if other players
            take over. The default is ``session`` itself, if the two differ only in the seed.
        from_view: all players begin at the cut, from the view. This also applies if ``past`` is
            unknown, or the session runs on a real clock.

    Returns:
        The fork, to be run with ``run_session``.

    Raises:
        InvalidInput: the origin has no such version, was closed or stopped by then, or was
            forgotten.
        Divergence: ``past`` is not what the origin's opening says.
    """
    trace = [record for record in origin if record.stream == TRACE]
    first = trace[0].event if trace else None
    if not isinstance(first, SessionOpened):
        raise InvalidInput("the opening record of the session to fork cannot be read")
    name = trace[0].session
    _check_version(trace, version)
    phases: tuple[Phase, ...] = ()
    if not from_view and first.clock == "virtual":
        past = past or _same_but_for_seed(session, first)
        if past is not None:
            check_opening(name, trace[0], past.opened)
            phases = _phases(past, version)
    opened = msgspec.structs.replace(
        session.opened,
        forked_from=Origin(session=name, version=version),
        request=first.request,
        clock=first.clock,
    )
    digest = codec.digest([session.id, session.opened.seed, name, version, from_view])[:10]
    return msgspec.structs.replace(
        session,
        id=f"fork-{digest}-of-{name}",
        opened=opened,
        request=None,
        inherited=Inheritance(
            time=trace[0].time,
            trace=tuple([_draft(record) for record in trace[1:version]]),
            measured=_measured(origin, session.scorers, version),
            outcomes=_outcomes(trace, version),
            phases=phases,
        ),
    )


def _check_version(trace: Sequence[Record], version: int) -> None:
    name = trace[0].session
    if not 2 <= version <= len(trace):
        raise InvalidInput(f"cannot fork {name} at version {version}: it has 2 to {len(trace)}")
    closed = next((record for record in trace if record.kind == "SessionClosed"), None)
    if closed is None:
        return
    if version >= closed.version:
        raise InvalidInput(
            f"cannot fork {name} at version {version}: it was closed at {closed.version}"
        )
    event = closed.event
    if isinstance(event, SessionClosed) and event.reason == "tolerance":
        stopped = closed.version
        for record in reversed(trace[: closed.version - 1]):
            if not _is_cancelled_outcome(record):
                break
            stopped = record.version
        if version >= stopped:
            raise InvalidInput(
                f"cannot fork {name} at version {version}: it was stopped at {stopped} "
                f"({event.detail})"
            )


def _is_cancelled_outcome(record: Record) -> bool:
    event = record.event
    return isinstance(event, ActionResolved) and event.outcome == "cancelled"


def _same_but_for_seed(session: Session, first: SessionOpened) -> Session | None:
    """The origin as it was run, if that is the session but for its seed."""
    if first.forked_from is not None:
        return None  # its earlier players are unknown
    opened = msgspec.structs.replace(
        session.opened, seed=first.seed, engine=first.engine, package=first.package
    )
    if msgspec.json.encode(opened) != msgspec.json.encode(first):
        return None
    return msgspec.structs.replace(session, opened=first)


def _phases(past: Session, version: int) -> tuple[Phase, ...]:
    """The origin's players up to the cut, phase after phase."""
    before = past.inherited
    phases: list[Phase] = []
    if before is not None:
        if not before.phases:
            return ()  # its players began at a cut, so the trace before that cannot be executed again
        phases += [p for p in before.phases if p.until is not None and p.until < version]
        if before.version >= version:
            last = before.phases[len(phases)]
            return (*phases, msgspec.structs.replace(last, until=version))
    return (
        *phases,
        Phase(
            opened=past.opened,
            players=past.players,
            timing=past.timing,
            request=past.request,
            until=version,
        ),
    )


def _draft(record: Record, ident: str | None = None) -> Draft:
    event = record.event
    if not isinstance(event, Event | Unknown):
        raise InvalidInput(f"cannot fork {record.session}: its contents were forgotten")
    return Draft(event, record.actor, record.role, record.time, ident, record.cause, record.seen)


def _measured(
    origin: Sequence[Record], scorers: Sequence[Scorer], version: int
) -> Mapping[str, tuple[Draft, ...]]:
    """The measurements of these scorers up to a trace version. Enforced stops are left out: the
    fork's own run decides whether to stop.
    """
    refs = {stream_of(scorer.ref): scorer.ref for scorer in scorers}
    found: dict[str, list[Record]] = {}
    for record in origin:
        if record.stream in refs and _about(record) <= version and record.kind != "StopAdvised":
            found.setdefault(record.stream, []).append(record)
    return {
        stream: tuple([_draft(record, record.caller_id) for record in records])
        for stream, records in found.items()
        if all(_ref(record) in (None, refs[stream]) for record in records)
    }


def _about(record: Record) -> float:
    """The trace version that a measurement was made of."""
    stream, _, version = (record.cause or "").rpartition("/")
    return int(version) if stream == TRACE and version.isdecimal() else float("inf")


def _ref(record: Record) -> ScorerRef | None:
    event = record.event
    return event.scorer if isinstance(event, UtilityScored | ScorerFailed) else None


def _outcomes(trace: Sequence[Record], version: int) -> tuple[Record, ...]:
    """Outcomes after the cut of actions before it. One that the end of the origin cancelled is not
    known: the fork performs the action itself.
    """
    return tuple(
        [
            record
            for record in trace[version:]
            if isinstance(record.event, ActionResolved)
            and record.event.action <= version
            and record.event.outcome != "cancelled"
        ]
    )
