"""How far the talk of simulated people is from that of people in logs: the table of ``docs/sensitivity.md``.

    duolog import gpt-4o-airline.json --log people.db   # and other logs of chats
    for task in travel finance data proof tutoring; do
      duolog run $task --agents one-stage,two-stage --users proactive,feedback,lazy,bounded --sessions 6 --seed 11 --log simulated.db
    done
    python -P -m duolog.benchmarks.manners simulated.db people.db

The sessions of people are divided by the parity of the SHA-256 digest of their id. The rates of the personas were fitted
on the first half only; the second half is for the report.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence

import anyio
from duolog.engine.log.open import open_log
from duolog.scoring.comparison.behaviour import Behaviour, read_behaviours
from duolog.scoring.comparison.simulators import audit

__all__ = ("half_of", "main")

_HALVES = ("fitted half", "other half")
_MEASURES = ("question_rate", "turn_length", "survival")


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
    return 0


async def _read(log: str) -> list[Behaviour]:
    async with open_log(log, create=False) as opened:
        return await read_behaviours(opened)


if __name__ == "__main__":
    raise SystemExit(main())
