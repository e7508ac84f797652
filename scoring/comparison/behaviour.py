"""The behaviour in a session by which people and their simulations can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from ...engine.events import (
    CloseReason,
    MessageSent,
    Participant,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
)
from ...engine.log.contract import EventLog
from ...engine.records import TRACE, Record
from ...engine.rounds import RoundProjector, is_act, is_requested
from ...engine.text import count_words
from ..trajectory.labels import simulator_of
from ..turns import is_vague

__all__ = ("Behaviour", "BehaviourFold", "read_behaviours", "simulated_as")

_GONE: Final[frozenset[CloseReason]] = frozenset({"finished", "abandoned", "ended", "tolerance"})
"""Ends that are the human's doing, as far as a log says; others cut the session off."""


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One session's human.

    Attributes:
        session: session id.
        simulated: what simulates them: a persona, perhaps with its model; empty for a person.
        task: the task of the session.
        turns: words of each message after the request.
        questions: for each of these, whether it asks something.
        vague: for each of these, whether it is a vague ask (``turns.is_vague``).
        edits: versions of the output that the human made.
        ratings: the ratings that the human gave.
        rounds: the last round.
        left: whether the human ended the session there; else it was cut off, or is still open. A
            session that was never closed, as in most logs of chats, was ended there if the agent
            acted last.
    """

    session: str
    simulated: str
    task: str = ""
    turns: Sequence[int]
    questions: Sequence[bool]
    vague: Sequence[bool]
    edits: int
    ratings: Sequence[int]
    rounds: int
    left: bool


def simulated_as(one: Participant, *, stamp: str = "") -> str:
    """What simulates a human: a persona, perhaps with its model; empty for a person.

    Args:
        one: the human.
        stamp: the stamp of the simulated user, as ``labels.simulator_of`` gives it: with one, any
            policy simulates.
    """
    if one.model is not None:
        return f"{one.persona or one.policy or one.name} on {one.model}"
    policy = one.policy if stamp or one.policy in ("rules", "model") else None
    return one.persona or policy or ""


@final
class BehaviourFold:
    """Folds one session's trace.

    Args:
        session: session id.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._rounds = RoundProjector()
        self._human: Participant | None = None
        self._simulated = self._task = ""
        self._forked = False
        self._requested = False
        self._turns: list[int] = []
        self._questions: list[bool] = []
        self._vague: list[bool] = []
        self._ratings: list[int] = []
        self._edits = 0
        self._digest = ""
        self._left: bool | None = None
        self._last = ""

    def feed(self, record: Record) -> None:
        """Takes the next record; those of measurement streams change nothing."""
        if record.stream != TRACE:
            return
        self._rounds.feed(record)
        self._last = record.role if is_act(record) else self._last
        event = record.event if record.kind in _READ else None
        if isinstance(event, SessionOpened):
            self._human = next((p for p in event.participants if p.role == "human"), None)
            if self._human is not None:
                self._simulated = simulated_as(self._human, stamp=simulator_of(event))
            self._task = event.task
            self._forked = event.forked_from is not None
            self._requested = is_requested(event)
        elif isinstance(event, SessionClosed):
            self._left = event.reason in _GONE
        elif isinstance(event, SnapshotTaken):
            self._edits += record.role == "human" and event.digest != self._digest
            self._digest = event.digest
        elif record.role != "human":
            return
        elif isinstance(event, MessageSent):
            self._message(event.text)
        elif isinstance(event, ProgressRated) and event.rating is not None:
            self._ratings.append(event.rating)

    @property
    def behaviour(self) -> Behaviour | None:
        """The human's behaviour; None without a human, or for a fork, which repeats a session."""
        if self._human is None or self._forked:
            return None
        return Behaviour(
            session=self._session,
            simulated=self._simulated,
            task=self._task,
            turns=self._turns,
            questions=self._questions,
            vague=self._vague,
            edits=self._edits,
            ratings=self._ratings,
            rounds=self._rounds.number,
            left=self._last == "agent" if self._left is None else self._left,
        )

    def _message(self, text: str) -> None:
        if not self._requested:
            self._requested = True  # the request is the task's, and not in the human's words
            return
        self._turns.append(count_words(text))
        self._questions.append("?" in text)
        self._vague.append(is_vague(text))


_READ = frozenset(
    {"SessionOpened", "SessionClosed", "SnapshotTaken", "MessageSent", "ProgressRated"}
)


async def read_behaviours(log: EventLog) -> list[Behaviour]:
    """Reads the behaviour of a log's humans, one per session; skips forks and sessions without one.

    Raises:
        CodecError: a body that is needed is damaged.
    """
    folds: dict[str, BehaviourFold] = {}

    def consume(records: Sequence[Record]) -> None:
        for record in records:
            if record.session not in folds:
                folds[record.session] = BehaviourFold(record.session)
            folds[record.session].feed(record)

    await log.scan(consume)
    found: Mapping[str, Behaviour | None] = {name: one.behaviour for name, one in folds.items()}
    return [one for one in found.values() if one is not None]
