"""Sessions for tests, an environment for them, and the streams that two runs have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON, ActionResolved, Forgotten, SessionOpened
from ..engine.log.contract import EventLog
from ..engine.log.open import open_log
from ..engine.records import TRACE, Draft, Record
from ..engine.scorers.protocol import Scorer
from ..engine.scorers.runner import StopRule
from ..engine.session.actors import Player
from ..engine.session.environment import Action, ActionSpec, Environment, NoEnvironment, Outcome
from ..engine.session.limits import Limits
from ..engine.session.runner import Session, SessionResult, run_session
from ..engine.session.time.clock import Clock, VirtualClock
from ..engine.session.time.scheduler import VirtualTurns
from ..engine.session.time.timing import Timing
from .tools import require

__all__ = (
    "Played",
    "Workshop",
    "a_session",
    "played",
    "put_records",
    "streams",
    "virtual_turns",
)

_SECONDS: Mapping[str, float] = {"look": 1.5, "search": 20.0, "build": 40.0, "fumble": 0.0}


@final
class Workshop:
    """An environment whose outcomes show the order in which its actions were performed.

    Each action that has an effect increases a count, which is its observation: ``look`` takes 1.5
    seconds and ``search`` 20, both may be repeated; ``build`` takes 40 and may not. ``fumble`` always
    fails.

    Args:
        pace: a factor on those times, for a real clock.

    Attributes:
        performed: trace versions of the actions performed, in order.
        recalled: trace versions of those whose recorded outcomes were taken over.
        count: number of actions that had an effect.
    """

    def __init__(self, pace: float = 1.0) -> None:
        self._pace = pace
        self.performed: list[int] = []
        self.recalled: list[int] = []
        self.count = 0

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """Its actions, by name."""
        return {
            name: ActionSpec(name=name, description=f"{name} things", repeatable=name != "build")
            for name in _SECONDS
        }

    async def perform(self, action: Action) -> Outcome:
        """Increases the count."""
        self.performed.append(action.version)
        if action.name == "fumble":
            raise InvalidInput("no participant can do this")
        self.count += 1
        return Outcome(
            observation={"count": self.count, "arguments": action.arguments},
            seconds=_SECONDS[action.name] * self._pace,
        )

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Increases the count for an action whose recorded outcome is taken over."""
        self.recalled.append(action.version)
        if resolved.outcome == "ok":
            self.count += 1


def a_session(
    *players: Player,
    id: str = "session",
    seed: int | None = 7,
    clock: Clock | None = None,
    environment: Environment | None = None,
    request: str | None = None,
    private: Mapping[str, JSON] | None = None,
    config: Mapping[str, JSON] | None = None,
    package: str = "",
    timing: Timing | None = None,
    limits: Limits | None = None,
    nudges: int = 3,
    scorers: Sequence[Scorer] = (),
    stop: StopRule | None = None,
) -> Session:
    """A session of these players, under a virtual clock unless another one is given."""
    clock = clock or VirtualClock()
    return Session(
        id=id,
        opened=SessionOpened(
            task="test",
            instance="1",
            participants=tuple(player.participant for player in players),
            clock=clock.name,
            seed=seed,
            config=config or {},
            private=private or {},
            package=package,
        ),
        players=players,
        environment=environment or NoEnvironment(),
        request=request,
        clock=clock,
        timing=timing or Timing(),
        limits=limits or Limits(),
        nudges=nudges,
        scorers=tuple(scorers),
        stop=stop,
    )


class Played(NamedTuple):
    """The result of a session, and its streams by name, as ``streams`` returns them."""

    result: SessionResult
    streams: dict[str, list[Record]]

    @property
    def trace(self) -> list[Record]:
        """The trace stream."""
        return self.streams[TRACE]


async def played(session: Session, *, fails: bool = False) -> Played:
    """Runs a session on a log in memory.

    Args:
        session: the session.
        fails: whether it is meant to end as failed.

    Raises:
        AssertionError: it failed, and was not meant to, or the other way round. So an ``assert`` in
            an actor, which fails the session, fails the test too.
    """
    async with open_log("memory://") as log:
        result = await run_session(log, session)
        require(
            (result.reason == "failed") is fails, f"it ended as {result.reason}: {result.error}"
        )
        return Played(result, await streams(log, session.id))


async def streams(log: EventLog, session: str) -> dict[str, list[Record]]:
    """All streams of a session by name, with positions set to 0, as two runs have them in common."""
    found: dict[str, list[Record]] = {}
    async for record in log.read_all(session=session):
        found.setdefault(record.stream, []).append(
            msgspec.structs.replace(record, position=0, _event=None)
        )
    return found


async def put_records(log: EventLog, records: Iterable[Record]) -> None:
    """Puts records into another log as they are, one append each, in the order given."""
    for record in records:
        if isinstance(record.event, Forgotten):
            raise InvalidInput(f"record {record.id} was forgotten, and cannot be written again")
        draft = Draft(
            record.event,
            record.actor,
            record.role,
            record.time,
            record.caller_id,
            record.cause,
            record.seen,
        )
        await log.append(record.session, [draft], stream=record.stream)


@contextmanager
def virtual_turns(*actors: str, seed: int = 0, hold: float = 600.0) -> Iterator[VirtualTurns]:
    """Turns under a virtual clock, for tests of actors; call it on a running loop.

    An actor that holds the turn for too long is an ``AssertionError`` in the loop.
    """

    def overdue(actor: str) -> None:
        raise AssertionError(f"{actor!r} held the turn for more than {hold} s")

    turns = VirtualTurns(
        VirtualClock(hold=hold), seed=seed, actors=frozenset(actors), on_overdue=overdue
    )
    try:
        yield turns
    finally:
        turns.close()
