"""Forks: a session that takes over the beginning of another, and goes on differently from there.

What a fork inherits is copied: same events, actors, times and versions, under a new opening that
names the origin. Its actors see it as their past; whatever they then do is new.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .. import codec
from ..errors import InvalidInput
from ..events import Event, Origin, SessionOpened, Unknown
from ..records import Draft, Record
from ..rounds import RoundProjector, Rounds
from .runner import Session

__all__ = ("end_before_round", "fork")


def end_before_round(trace: Sequence[Record], number: int, convention: Rounds = "handoff") -> int:
    """The trace version after which a round begins: where to fork in order to play it again.

    Args:
        trace: the records of the origin's trace, in order.
        number: of the round, from 2; what is before round 1 is the opening alone.
        convention: how rounds are counted.

    Raises:
        InvalidInput: there is no such round.
    """
    projector = RoundProjector(convention)
    for record in trace:
        projector.feed(record)
        if projector.number == number and number > 1:
            return record.version - 1
    raise InvalidInput(
        f"there is no round {number} to fork at: the session has {projector.number} rounds, and the "
        "first to fork at is round 2"
    )


def fork(session: Session, origin: Sequence[Record], version: int) -> Session:
    """Makes a session that goes on from some version of another session's trace.

    For example, the same session from its second round on, with another seed::

        from duolog.engine.session.fork import end_before_round

        trace = [record async for record in log.read(session.id)]
        opened = msgspec.structs.replace(session.opened, seed=2)
        other = msgspec.structs.replace(session, opened=opened)
        forked = duolog.fork(other, trace, end_before_round(trace, 2))
        result = await duolog.run_session(log, forked)

    Args:
        session: how it is to go on: players, seed, limits, scorers. Its id is replaced.
        origin: the records of the origin's trace, in order.
        version: the last trace version that is inherited, 2 at least.

    Returns:
        The fork, to be run with ``run_session``.

    Raises:
        InvalidInput: the origin has no such version, was closed by then, or was forgotten.
    """
    if not origin or not isinstance(origin[0].event, SessionOpened):
        raise InvalidInput("the session to fork has no opening that can be read")
    name = origin[0].session
    if not 2 <= version <= len(origin):
        raise InvalidInput(f"cannot fork {name} at version {version}: it has 2 to {len(origin)}")
    inherited: list[Draft] = []
    for record in origin[1:version]:
        event = record.event
        if record.kind == "SessionClosed":
            raise InvalidInput(
                f"cannot fork {name} at version {version}: it was closed at {record.version}"
            )
        if not isinstance(event, Event | Unknown):
            raise InvalidInput(f"cannot fork {name}: its contents were forgotten")
        inherited.append(
            Draft(event, record.actor, record.role, record.time, None, record.cause, record.seen)
        )
    first = origin[0].event
    opened = msgspec.structs.replace(
        session.opened,
        forked_from=Origin(session=name, version=version),
        request=first.request,
        clock=first.clock,
    )
    digest = codec.digest([session.id, session.opened.seed, name, version])[:10]
    return msgspec.structs.replace(
        session,
        id=f"{session.id}-fork-{digest}",
        opened=opened,
        request=None,
        inherited=tuple(inherited),
    )
