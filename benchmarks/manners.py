"""How far the talk of simulated people is from that of people in logs: the tables of ``docs/sensitivity.md``.

    duolog import gpt-4o-airline.json --log people.db   # and other logs of chats
    for task in travel finance data proof tutoring; do
      duolog run $task --agents one-stage,two-stage --users proactive,feedback,lazy,bounded --sessions 6 --seed 11 --log simulated.db
    done
    python -P -m duolog.benchmarks.manners simulated.db people.db

The sessions of people are divided by the parity of the SHA-256 digest of their id. The rates of the personas were fitted
on the first half only; the second half is for the report. Two more tables show how varied the messages are, and the shares
of labels.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

import anyio
from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.rounds import is_requested
from duolog.scoring.comparison.behaviour import Behaviour, read_behaviours
from duolog.scoring.comparison.simulators import audit
from duolog.scoring.turns import Label, Turn, annotate
from duolog.users.manner import plain

__all__ = ("half_of", "main")

_HALVES = ("fitted half", "other half")
_MEASURES = ("question_rate", "turn_length", "survival")
_LABELS: Sequence[Label] = ("deny", "correction", "praise", "complaint", "repeat", "clarify")
_TOP = 10
_DRAWN, _DRAWS = 46, 200
"""Messages of a sample in which repeated skeletons are counted, and the number of samples."""


def half_of(session: str) -> int:
    """The half that a session belongs to: 0 is fitted, 1 is reported."""
    return int(hashlib.sha256(session.encode()).hexdigest(), 16) % 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table for each half; returns the exit code."""
    parser = argparse.ArgumentParser(prog="manners", description=__doc__)
    parser.add_argument("simulated", help="a log with simulated people")
    parser.add_argument("people", help="a log with people")
    given = parser.parse_args(arguments)
    simulated = anyio.run(_read, given.simulated)
    people = anyio.run(_read, given.people)
    print("| half | persona | measure | people | simulated | W1 |\n|---|---|---|---|---|---|")
    for half, name in enumerate(_HALVES):
        found = audit(
            simulated, [one for one in people if half_of(one.session) == half], resamples=0
        )
        for persona in found.personas:
            for gap in persona.measures:
                if gap.measure in _MEASURES and gap.reason is None:
                    numbers = (gap.people.value, gap.simulated.value, gap.wasserstein.value)
                    shown = " | ".join("–" if one is None else f"{one:.2f}" for one in numbers)
                    print(f"| {name} | {persona.simulated} | {gap.measure} | {shown} |")
    print(f"\n| | {' | '.join(('messages', 'skeletons', 'top ten', 'repeated', *_LABELS))} |")
    print(f"|---{'|---' * (4 + len(_LABELS))}|")
    for log, name in ((given.simulated, ""), (given.people, "people")):
        for group, turns in anyio.run(_turns, log, name).items():
            print(f"| {group} | {' | '.join(_varied(turns))} |")
    return 0


def _varied(turns: Sequence[Turn]) -> Iterator[str]:
    """How varied messages are, and the shares of their labels."""
    skeletons = Counter(_skeleton(plain(turn.text)) for turn in turns)
    whole = [_skeleton(turn.text) for turn in turns]
    chance = Random("manners")
    size = min(_DRAWN, len(whole))
    fresh = sum(len({*chance.sample(whole, size)}) for _ in range(_DRAWS)) / (_DRAWS * size)
    yield f"{len(turns)} | {len(skeletons)}"
    yield f"{sum(count for _, count in skeletons.most_common(_TOP)) / len(turns):.2f}"
    yield f"{1.0 - fresh:.2f}"
    labels = Counter(label for turn in turns for label in annotate(turn) or ())
    for label in _LABELS:
        yield f"{labels[label] / len(turns):.2f}"


def _skeleton(text: str) -> str:
    """A message without numbers and names: a name is a capitalised word that begins no sentence."""
    text = re.sub(r"\d[\d,./]*", "#", text)
    return re.sub(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'-]*", "_", text).lower()


async def _turns(log: str, name: str) -> Mapping[str, list[Turn]]:
    """The messages of humans after the request, by task, or all under one name."""
    found: dict[str, list[Turn]] = {}
    group: dict[str, str] = {}
    said: dict[tuple[str, str], str] = {}
    requested: set[str] = set()
    async with open_log(log, create=False) as opened:
        async for record in opened.read_all():
            event, session = record.event, record.session
            if isinstance(event, SessionOpened):
                group[session] = name or event.task
                if is_requested(event):
                    requested.add(session)
            elif isinstance(event, MessageSent):
                if record.role == "human" and session in requested:
                    before, own = said.get((session, "agent"), ""), said.get((session, "human"), "")
                    turn = Turn(text=event.text, before=before, said=own)
                    found.setdefault(group[session], []).append(turn)
                if record.role == "human":
                    requested.add(session)
                said[session, record.role] = event.text
    return found


async def _read(log: str) -> list[Behaviour]:
    async with open_log(log, create=False) as opened:
        return await read_behaviours(opened)


if __name__ == "__main__":
    raise SystemExit(main())
