"""The confusion table of a profile's diagnoses on planted agents.

    python -P -m duolog.benchmarks.profiles              # 200 runs, about two minutes of CPU
    python -P -m duolog.benchmarks.profiles --runs 14

A run is one planted agent on two tasks, with two problems and two people each. The limits of the diagnoses were set
on seeds 50, 4101 and 7000 to 7199; the runs have other seeds. The same code gives the same table.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import anyio
from duolog.benchmarks.profiles.characters import CHARACTERS, Character, planted_task
from duolog.benchmarks.science.words import table
from duolog.engine.log.open import open_log
from duolog.engine.session.simulation import simulate
from duolog.engine.task import Cell, Setting
from duolog.experiments.profile.diagnosis import KINDS, Diagnosis, Kind, diagnose
from duolog.experiments.profile.signs import read_signs

__all__ = ("EXPECTED", "Tally", "confusion_table", "main", "play_run", "tally")

_RUNS: Final = 200
_SEED: Final = 9000
_PAIRS: Final = (
    ("travel", "data"),
    ("data", "finance"),
    ("finance", "proof"),
    ("proof", "tutoring"),
    ("tutoring", "travel"),
)
_SCAFFOLDS: Final = ("one-stage", "two-stage", "adaptive")
_USERS: Final = ("proactive", "lazy")

EXPECTED: Final[dict[Character, Kind]] = {
    "good": "sustained",
    "plateau": "plateau",
    "loop": "loop",
    "early polish": "early polish",
    "shifted": "shifted",
    "opaque": "opaque",
    "flood": "flood",
}
"""What each planted agent is to be found to be."""


class Tally(NamedTuple):
    """How often what was planted was found to be what."""

    found: Counter[tuple[Kind, Kind]]

    @classmethod
    def of(cls, counts: Mapping[tuple[Kind, Kind], int]) -> Tally:
        """A tally of counts by planted kind and diagnosed kind."""
        return cls(Counter(counts))

    def precision(self, kind: Kind) -> float | None:
        """The share of runs with this diagnosis in which it was planted."""
        said = sum(count for (_, found), count in self.found.items() if found == kind)
        return self.found[kind, kind] / said if said else None

    def recall(self, kind: Kind) -> float | None:
        """The share of runs with it planted that have this diagnosis."""
        there = sum(count for (planted, _), count in self.found.items() if planted == kind)
        return self.found[kind, kind] / there if there else None


async def play_run(number: int, character: Character) -> Diagnosis:
    """One run: a planted agent on two tasks, with two problems and two people each."""
    scaffold = _SCAFFOLDS[number % len(_SCAFFOLDS)]
    async with open_log("memory://") as log:
        makers = [
            partial(
                task.session,
                Cell(agent=scaffold, user=user, instance=instance, seed=_SEED + number),
                Setting(),
            )
            for name in _PAIRS[number % len(_PAIRS)]
            for task in [planted_task(name, character)]
            for instance in task.instances(2, _SEED + number)
            for user in _USERS
        ]
        await simulate(log, makers)
        return diagnose(await read_signs(log), resamples=0)


async def tally(runs: int) -> Tally:
    """Plays some runs, each character in turn, and counts the diagnoses."""
    found: Counter[tuple[Kind, Kind]] = Counter()
    for number in range(runs):
        character = CHARACTERS[number % len(CHARACTERS)]
        found[EXPECTED[character], (await play_run(number, character)).kind] += 1
    return Tally(found)


def confusion_table(found: Tally) -> str:
    """The table in Markdown: a row for each planted kind, a column for each diagnosis."""
    kinds = list(EXPECTED.values())
    said = [*kinds, *(kind for kind in KINDS if kind not in kinds)]
    body = [
        [
            planted,
            *(str(found.found[planted, kind] or "") for kind in said),
            _shown(found.precision(planted)),
            _shown(found.recall(planted)),
        ]
        for planted in kinds
    ]
    return "\n".join(table(("planted", *said, "precision", "recall"), body))


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=_RUNS)
    runs: int = parser.parse_args(arguments).runs
    print(confusion_table(anyio.run(tally, runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
