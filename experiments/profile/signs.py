"""The signs of each session by which a profile tells kinds of collaborators apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from ...engine.events import ApprovalAsked, MessageSent, SessionOpened, SnapshotTaken
from ...engine.log.contract import EventLog
from ...engine.records import TRACE, Record
from ...engine.rounds import is_unproductive
from ...engine.task import Cell
from ...engine.text import count_words
from ...scoring.live import score_sessions
from ...scoring.trajectory.points import Point, Trajectory, counted

__all__ = ("CHANGE", "Signs", "read_signs")

CHANGE: Final = 0.005
"""Utility has changed if it differs by this much: less is a rounding of the scorer's."""


@final
class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """The signs of one session.

    A turn is what the agent does between two acts of the human. Later turns are those after the turn
    with its first output. A share is None if there is nothing that it is a share of.

    Attributes:
        session: id.
        task: the task of the session.
        agent: its kind.
        user: the persona of the human.
        problem: which problem it was; sessions of one problem are resampled together.
        seed: the seed of the problem, which tells the halves of a suite apart.
        baseline: no human, or no agent took part.
        failed: an actor failed, which ended the session: what it shows is not the agent's way of working.
        first: utility at the first output.
        final: utility at the end.
        best: the highest utility.
        minutes: the human's minutes.
        written: tokens that the human wrote.
        read: tokens that the human had to read.
        rounds: how many there were.
        unproductive: share of rated rounds that were unproductive.
        clarifications: messages of the human that ask about the agent's words or work.
        looping: share of the agent's acts that repeat the ones before.
        empty: share of the agent's later outputs that left utility as it was.
        polished: how many outputs that were; None if no round followed its first output.
        unexplained: share of the later turns with an output in which nothing is said about it.
        handed: share of the later turns that only ask the human something, and work on nothing.
        idle: share of the later turns that only say something, and work on nothing.
        waited: how many turns that were.
        words: words that the human was sent for each turn with a message.
        tail: share of the rounds that came after utility had last risen.
        utilities: utility after each round.
        ratings: the ratings of each round; None for none.
        until: minutes of the human up to the end of each round.
    """

    session: str
    task: str
    agent: str
    user: str
    problem: str
    seed: int | None
    baseline: bool
    first: float
    final: float
    best: float
    minutes: float
    written: float
    read: float
    rounds: int
    failed: bool = False
    unproductive: float | None = None
    clarifications: float | None = None
    looping: float | None = None
    empty: float | None = None
    polished: int | None = None
    unexplained: float | None = None
    handed: float | None = None
    idle: float | None = None
    waited: int = 0
    words: float | None = None
    tail: float | None = None
    utilities: tuple[float, ...] = ()
    ratings: tuple[int | None, ...] = ()
    until: tuple[float, ...] = ()


async def read_signs(log: EventLog) -> list[Signs]:
    """The signs of all sessions of a log that have a utility, in order of their first records.

    Sessions that are open, and forks, are left out.

    Raises:
        CodecError: a body that is needed is damaged.
    """
    turns: dict[str, _Turns] = {}
    async for record in log.read_all():
        if record.stream == TRACE:
            turns.setdefault(record.session, _Turns()).feed(record)
    return [
        signs
        async for item in score_sessions(log, process=True)
        if item.state != "open" and item.forked_from is None
        if (signs := _signs(item, turns[item.session])) is not None
    ]


class _Turn(msgspec.Struct):
    """The acts of the agent between two acts of the human."""

    asked: bool = False
    stated: bool = False
    worked: bool = False
    outputs: int = 0
    words: int = 0


class _Turns:
    """The turns of the agent in one session."""

    def __init__(self) -> None:
        self.turns: list[_Turn] = []
        self.seed: int | None = None
        self.people = False
        self.agents = False
        self.acts = 0
        self._open = False

    def feed(self, record: Record) -> None:
        """Takes the next record of the trace."""
        event = record.event
        if isinstance(event, SessionOpened):
            roles = {one.role for one in event.participants}
            self.people, self.agents = "human" in roles, "agent" in roles
            self.seed = _seed(event.config)
        elif record.role == "human" and record.kind in ("MessageSent", "SnapshotTaken"):
            self._open = False
        elif record.role == "agent":
            self._acted(record)

    def _acted(self, record: Record) -> None:
        event = record.event
        said = event.text if isinstance(event, MessageSent) else ""
        if isinstance(event, ApprovalAsked):
            said = event.question
        output = isinstance(event, SnapshotTaken)
        worked = output or record.kind == "ActionTaken"
        if not said and not worked:
            return
        self.acts += 1
        if not self._open:
            self.turns.append(_Turn())
            self._open = True
        turn = self.turns[-1]
        turn.outputs += output
        turn.worked = turn.worked or worked
        turn.words += count_words(said)
        turn.asked = turn.asked or "?" in said
        turn.stated = turn.stated or bool(_statements(said))


def _statements(said: str) -> list[str]:
    """The sentences of a message that ask nothing."""
    found: list[str] = []
    begin = 0
    for place, sign in enumerate(said):
        if sign in ".!?:\n" or place == len(said) - 1:
            sentence = said[begin : place + 1].strip()
            begin = place + 1
            if len(sentence) > 1 and not sentence.endswith("?"):
                found.append(sentence)
    return found


def _seed(config: Mapping[str, object]) -> int | None:
    try:
        return msgspec.convert(config.get("cell"), Cell).seed
    except msgspec.ValidationError:
        return None


def _signs(item: Trajectory, found: _Turns) -> Signs | None:
    points = counted(item)
    utilities = [point.utility for point in points]
    known = [value for value in utilities if value is not None]
    if not item.evaluated or len(known) < len(utilities) or not known:
        return None
    effort = points[-1].effort if not item.points else item.points[-1].effort
    process = item.process
    later = _later(found.turns)
    updated = [turn for turn in later if turn.outputs]
    said = [turn.words for turn in found.turns if turn.words]
    rated = [point.rating for point in points if point.rating is not None]
    changed = _changes(points)
    together = found.people and found.agents
    return Signs(
        session=item.session,
        task=item.group.get("task", ""),
        agent=item.group.get("agent", ""),
        user=item.group.get("user", ""),
        problem=item.problem or item.instance,
        seed=found.seed,
        baseline=not together,
        first=next((p.utility or 0.0 for p in points if p.updated), 0.0 if together else known[-1]),
        final=known[-1],
        best=max(known),
        minutes=(effort.get("seconds") or 0.0) / 60.0 if found.people else 0.0,
        written=effort.get("tokens_written") or 0.0,
        read=effort.get("tokens_read") or 0.0,
        rounds=len(points),
        failed=item.state == "failed",
        unproductive=_share([is_unproductive(rating) for rating in rated]),
        clarifications=None if process is None else process.clarifications,
        looping=_of(None if process is None else process.looping_acts, found.acts),
        empty=_share([not change for change in changed]),
        polished=len(changed) if _goes_on(points) else None,
        unexplained=_share([not turn.stated for turn in updated]),
        handed=_share([turn.asked and not turn.worked for turn in later]),
        idle=_share([not turn.asked and not turn.worked for turn in later]),
        waited=sum(not turn.asked and not turn.worked for turn in later),
        words=sum(said) / len(said) if said else None,
        tail=_tail(known),
        utilities=tuple(known),
        ratings=tuple(point.rating for point in points),
        until=tuple((point.effort.get("seconds") or 0.0) / 60.0 for point in points),
    )


def _later(turns: Sequence[_Turn]) -> Sequence[_Turn]:
    first = next((place for place, turn in enumerate(turns) if turn.outputs), len(turns))
    return turns[first + 1 :]


def _changes(points: Sequence[Point]) -> list[bool]:
    """For each round with a later output of the agent, whether utility changed."""
    found: list[bool] = []
    before: float | None = None
    seen = False
    for point in points:
        if point.updated and seen and point.utility is not None and not point.stale:
            found.append(before is None or abs(point.utility - before) >= CHANGE)
        seen = seen or point.updated
        before = point.utility
    return found


def _goes_on(points: Sequence[Point]) -> bool:
    """Whether a round follows the one with the first output."""
    first = next(
        (place for place, point in enumerate(points, start=1) if point.updated), len(points)
    )
    return first < len(points)


def _tail(utilities: Sequence[float]) -> float | None:
    best, last = 0.0, 0
    for place, value in enumerate(utilities, start=1):
        if value >= best + CHANGE:
            best, last = value, place
    return _of(len(utilities) - last, len(utilities))


def _share(found: Sequence[bool]) -> float | None:
    return _of(sum(found), len(found))


def _of(part: float | None, whole: int) -> float | None:
    return None if part is None or not whole else part / whole
