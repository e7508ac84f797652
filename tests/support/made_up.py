"""Sessions that are made up at random, for tests that hold what is computed of them to a reference."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from duolog.engine import codec
from duolog.engine.events import (
    ACTS,
    ActionTaken,
    ApprovalAsked,
    CloseReason,
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    ProgressRated,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    UtilityScored,
)
from duolog.engine.records import Record
from duolog.engine.rounds import RoundProjector
from duolog.testing.records import AGENT, HUMAN, RecordWriter

__all__ = ("made_up",)

TEXTS = ("", "hello there", "plan a day in Oslo", "make it better", "up to you")
OUTPUTS = ("", "  ", "Fjord\nOpera", "Fjord\nMuseum", "Fjord\nMuseum\nHarbour walk", "Oslo")


def made_up(
    chance: random.Random,
    session: str = "s",
    *,
    named: Sequence[str] = ("", "j", "k"),
    reasons: Sequence[CloseReason] = ("ended",),
) -> list[Record]:
    """A session as it may come about: acts of both, other events, scores in between and late.

    Args:
        chance: decides.
        session: its id.
        named: judges of which its opening names one: j counts rounds by handoff, k by human turns.
        reasons: why it may be closed.
    """
    script = RecordWriter(session)
    parts = (HUMAN,) if chance.random() < 0.1 else (HUMAN, AGENT)
    config = {"utility": "u"} if chance.random() < 0.4 else {}
    judge = chance.choice(named)
    config |= {"judge": judge} if judge else {}
    request = chance.choice([None, " ", "Plan a day."])
    opened = SessionOpened(
        task="t",
        instance="1",
        participants=parts,
        clock=chance.choice(["utc", "virtual"]),
        request=request,
        config=config,
    )
    script.add(opened, "engine", "environment", at=0.0)
    drafts: list[int] = []
    acts: list[int] = []
    judges = {"j": RoundProjector("handoff"), "k": RoundProjector("human-turn")}
    judges = {name: judges[name] for name in named if name}
    due: list[ProgressRated] = []
    now = 0.0
    often = chance.choice([0.0, 0.5])
    for _ in range(chance.randrange(24)):
        now += chance.choice([0.0, 1.0, 7.5, 400.0])
        who = chance.choice(parts)
        event = an_event(chance)
        record = script.add(event, who.name, who.role, at=now)
        if record.kind in ACTS:
            acts.append(record.version)
        if isinstance(event, SnapshotTaken):
            drafts.append(record.version)
        due += ratings(judges, record, chance)
        while chance.random() < often and acts:
            score(script, chance, drafts, acts)
            rate(script, chance, due)
    if chance.random() < 0.7:
        closed = SessionClosed(reason=chance.choice(reasons), by="engine")
        due += ratings(judges, script.add(closed, "engine", "environment", at=now), chance)
    for _ in range(chance.choice([0, 4, 20]) if acts else 0):
        score(script, chance, drafts, acts)
        rate(script, chance, due)
    return script.records


def ratings(
    judges: Mapping[str, RoundProjector], record: Record, chance: random.Random
) -> list[ProgressRated]:
    """What each judge rates as the rounds are over that it counts."""
    found: list[ProgressRated] = []
    for name, projector in judges.items():
        over = projector.feed(record)
        if over is not None:
            ref = ScorerRef(name=name, version="1", config="")
            rating, until = chance.choice([None, 1, 2, 2, 4]), over.last_act or over.last
            rounds = projector.convention
            found.append(
                ProgressRated(
                    round=over.number, rating=rating, until=until, rounds=rounds, scorer=ref
                )
            )
    return found


def rate(script: RecordWriter, chance: random.Random, due: list[ProgressRated]) -> None:
    """Records one of the ratings that are due, in any order."""
    if due:
        rated = due.pop(chance.randrange(len(due)))
        name = rated.scorer.name if rated.scorer else ""
        script.add(rated, name, "scorer", stream=f"{name}@1")


def an_event(chance: random.Random) -> Event:
    content = chance.choice(OUTPUTS)
    return chance.choice(
        [
            MessageSent(text=chance.choice(TEXTS)),
            MessageSent(text=chance.choice(TEXTS)),
            ActionTaken(name="search", collaborative=chance.random() < 0.3),
            SnapshotTaken(content=content, digest=codec.digest(content)),
            ApprovalAsked(question=chance.choice(TEXTS)),
            NoteTaken(text="remember"),
            ModelCalled(
                model="m",
                purpose="act",
                request="digest",
                tokens=Tokens(completion=chance.choice([None, 5, 17])),
            ),
        ]
    )


def score(
    script: RecordWriter, chance: random.Random, drafts: Sequence[int], acts: Sequence[int]
) -> None:
    name = chance.choice(["u", "v"])
    ref = ScorerRef(name=name, version="1", config="")
    value = chance.choice([None, 0.0, 0.25, 0.5, 1.0])
    if drafts and chance.random() < 0.6:
        event = UtilityScored(scorer=ref, snapshot=chance.choice(drafts), value=value)
    else:
        event = UtilityScored(scorer=ref, round=1, until=chance.choice(acts), value=value)
    script.add(event, name, "scorer", stream=f"{name}@1")
