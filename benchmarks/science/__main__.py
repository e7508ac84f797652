"""The study of the shipped agents on held-out instances: ``make science``.

    python -P -m duolog.benchmarks.science              # some 15,000 sessions and forks, some 18 minutes of CPU
    python -P -m duolog.benchmarks.science --tiny --docs /tmp

It plays what its logs do not hold, and writes ``science.md``, the paper's phenomena as hypotheses; the tables of
``agents.md``: the goal of the adaptive agent, what asking is worth, and what each habit does; and the numbers and the figure of each page of the
gallery, with what forks rescue. The same code gives the same pages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
from duolog.benchmarks.science.ablation import PERSON as ABLATED_PERSON
from duolog.benchmarks.science.ablation import ablated_agents, ablation_text
from duolog.benchmarks.science.asking import Asked, asking_text, play_asking
from duolog.benchmarks.science.cells import AGENTS, FULL, PERSONAS, TINY, WEAK, Size
from duolog.benchmarks.science.gallery import gallery_text, play_gallery
from duolog.benchmarks.science.goal import goal_text
from duolog.benchmarks.science.phenomena import OPAQUE, PERSON, phenomena_text
from duolog.benchmarks.science.playing import Played, Players, load, play
from duolog.benchmarks.science.rescue import Rescue, rescue_text, rescues
from duolog.cli.runtime import collect_rarely

__all__ = ("main",)

_ROOT: Final = Path(__file__).resolve().parents[2]

_HEAD: Final = """# The paper's phenomena, on our tasks

`make science` writes this page. It is a regression report: what [Shen et al.](https://arxiv.org/abs/2510.25744)
saw in their simulations is stated as hypotheses, and put to the shipped tasks. Agents and people go by rules here, and
by language models there; what does not show is part of the result.

{count} instances of each task (seeds {seeds}, held out: rules were written and fitted on seeds 1 to 5), {person}
people. Differences are paired by instance; intervals are 95 % bootstrap intervals over instances. A hypothesis predicts
a side of 0, or of a limit that it names. It *holds* if the whole interval lies on that side, *does not hold* if it lies on the
other, and is *not shown* otherwise. Nothing is adjusted for the number of hypotheses.

Hypotheses on the drop are tested under six readings of the ratings: a rating below 2, 3 or 4 is unproductive, and a missing one
is productive or not. The estimate is that of the usual reading (below 3, productive). If the readings do not all give one
verdict, the hypothesis *depends* on the reading, and nothing should be claimed from it. The column *verdict by reading* counts
them: "holds in 4, not shown in 2" means that the hypothesis holds in four of the six readings. The share of unproductive rounds
has three readings, since it leaves out rounds without a rating.

The weak agents are `looper`, which does what failed again, `polisher`, which changes blanks, and `flatterer`, which agrees and
changes nothing. They play {weak} of the instances.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays, and writes the pages; returns the exit code."""
    parser = argparse.ArgumentParser(prog="science", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a few sessions, to see that it works")
    parser.add_argument("--logs", type=Path, default=_ROOT / "build" / "science")
    parser.add_argument("--docs", type=Path, default=_ROOT / "docs")
    given = parser.parse_args(arguments)
    size = TINY if given.tiny else FULL
    given.logs.mkdir(parents=True, exist_ok=True)
    collect_rarely()
    found = anyio.run(_play, size, given.logs)
    _write(given.docs / "science.md", _science(found, size))
    agents = given.docs / "agents.md"
    text = (
        agents.read_text(encoding="utf-8")
        if agents.exists()
        else _blank("goal", "asking", "ablation")
    )
    tables = {
        "goal": goal_text(found, size),
        "asking": asking_text(anyio.run(_play_asking, size, given.logs), size),
        "ablation": ablation_text(found, size),
    }
    for name, table in tables.items():
        text = _replaced(text, name, table)
    _write(agents, text)
    pages = given.docs / "gallery"
    pages.mkdir(exist_ok=True)
    logs = given.logs / "gallery"
    logs.mkdir(exist_ok=True)
    for task, (played, rescued) in anyio.run(_play_gallery, size, logs).items():
        page = pages / f"{task}.md"
        text = page.read_text(encoding="utf-8") if page.exists() else _blank("numbers", "forks")
        numbers = gallery_text(played, size, pages / f"{task}.svg")
        text = _replaced(text, "numbers", numbers)
        forks = "\n".join(rescue_text(task, rescued, size.gallery))
        _write(page, _replaced(text, "forks", forks))
    return 0


async def _play_gallery(size: Size, logs: Path) -> dict[str, tuple[Played, list[Rescue]]]:
    found = {}
    for task in size.tasks:
        sys.stderr.write(f"{task}, gallery: ")
        played = await play_gallery(task, size, logs)
        found[task] = played, await rescues(task, played, logs)
    return found


async def _play_asking(size: Size, logs: Path) -> dict[str, Asked]:
    found = {}
    for task in size.tasks:
        sys.stderr.write(f"{task}, asking: ")
        folder = logs / "asking"
        folder.mkdir(exist_ok=True)
        found[task] = await play_asking(task, size, folder)
    return found


async def _play(size: Size, logs: Path) -> dict[str, Played]:
    found: dict[str, Played] = {}
    for task in size.tasks:
        sys.stderr.write(f"{task}: ")
        others = ["auto", *([OPAQUE[task]] if task in OPAQUE else [])]
        players = [
            Players(AGENTS, PERSONAS, size.instances),
            Players(others, (PERSON,), size.instances),
            Players(WEAK, (PERSON,), size.ablated),
            Players(ablated_agents(task), (ABLATED_PERSON,), size.ablated),
        ]
        await play(task, players, size.seeds, logs)
        found[task] = await load(task, logs, size.seeds)
    return found


def _science(found: dict[str, Played], size: Size) -> str:
    head = _HEAD.format(
        count=size.instances * len(size.seeds),
        seeds=", ".join(map(str, size.seeds)),
        person=PERSON,
        weak=size.ablated * len(size.seeds),
    )
    return f"{head}{phenomena_text(found, size)}\n"


def _replaced(text: str, name: str, table: str) -> str:
    """The text with another table between its marks."""
    begin, end = _marks(name)
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def _blank(*names: str) -> str:
    """A page with places for tables."""
    return "\n".join(mark for name in names for mark in _marks(name)) + "\n"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    sys.stderr.write(f"written: {path}\n")


if __name__ == "__main__":
    raise SystemExit(main())
