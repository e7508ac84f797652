"""The contract of tasks: a task that keeps it passes; for each broken one, the error names the cause.

Tests of the shipped tasks hold each to the contract, but for travel: docs/your-own.md shows such a test of it, which
``test_docs_snippets.py`` runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec
import pytest
from duolog.engine.events import JSON, SessionOpened, SnapshotTaken
from duolog.engine.scorers.protocol import Scorer
from duolog.engine.session.decisions import Decision, Submit
from duolog.engine.session.runner import Session
from duolog.engine.session.view import View
from duolog.engine.task import Cell, Setting
from duolog.scoring.scorers.utility import Score, SnapshotUtility
from duolog.tasks.actions import ActionTable, action
from duolog.tasks.kit import HUMAN_ALONE, BestOutput, Case, KitTask, TaskSpec
from duolog.tasks.rule_agent import RuleAgent
from duolog.testing import check_task
from toy_task import SPEC, Count, Florist, Garden, Known, bouquet_task, case

Spec = TaskSpec[Garden]


def changed(**parts: object) -> KitTask[Garden]:
    return KitTask(msgspec.structs.replace(SPEC, **parts))


def worth(
    score: Callable[[SnapshotTaken, SessionOpened], Score],
) -> Callable[[Garden], Scorer]:
    return lambda garden: SnapshotUtility("bouquet", "1", score)


def all_alike(name: str, seed: int) -> Case[Garden]:
    return case("0", seed)


def in_stock(garden: Garden, asked: Count) -> JSON:
    return [f"Fond of the {flower}" for flower in garden.wanted]


class Clairvoyant(Florist):
    """Looks the profile up, by the name of the instance."""

    def work(self, known: Known, view: View) -> Decision | None:
        assert view.opened is not None
        if known.wishes == known.drafted:
            return None
        return Decision((Submit(", ".join(case(view.opened.instance, 1).world.wanted)),))


class Moody(Florist):
    """Never does the same twice."""

    def report(self, known: Known, words: object, standing: object) -> str:
        return f"It is number {next(_NUMBERS)}."


class Shy(Florist):
    """Fails if it is looked at."""

    def work(self, known: Known, view: View) -> Decision | None:
        raise RuntimeError("please do not look")


_NUMBERS: Iterator[int] = itertools.count()

BROKEN: dict[str, tuple[KitTask[Garden], str]] = {
    "one instance": (changed(names=lambda count, seed: ["0"]), "needs two instances"),
    "other names": (
        changed(names=lambda count, seed: [str(next(_NUMBERS)) for _ in range(count)]),
        "same names each time",
    ),
    "instances alike": (changed(case=all_alike), "differ in what is hidden"),
    "no best output": (
        changed(best_output=lambda name, seed: BestOutput(0.0)),
        r"a value in \(0, 1\]",
    ),
    "a false best output": (
        changed(best_output=lambda name, seed: BestOutput(1.0, "aster")),
        "says that it is worth 1, and is measured as",
    ),
    "a modest best output": (
        changed(best_output=lambda name, seed: BestOutput(0.1)),
        "the best output says that 0.1 is the best",
    ),
    "no parts": (
        changed(
            utility=worth(lambda taken, opened: Score(0.5)),
            best_output=lambda name, seed: BestOutput(1.0),
        ),
        "has no parts",
    ),
    "no utility": (
        changed(
            utility=worth(lambda taken, opened: Score(2.0)),
            best_output=lambda name, seed: BestOutput(1.0),
        ),
        "measured in every session",
    ),
    "another utility": (
        changed(
            utility=worth(lambda taken, opened: Score(1 / (2 + next(_NUMBERS)), {"luck": 1.0})),
            best_output=lambda name, seed: BestOutput(1.0),
        ),
        "byte for byte|measured again",
    ),
    "a leak": (
        changed(environment=ActionTable([action(Count, in_stock)]).environment),
        r"agent sees 'fond of the .*' of the hidden profile in record .*ActionResolved",
    ),
    "clairvoyance": (
        changed(agent=lambda habits: RuleAgent(Clairvoyant())),
        "it knows what nobody has said",
    ),
    "moods": (changed(agent=lambda habits: RuleAgent(Moody())), "byte for byte"),
    "failure": (
        changed(agent=lambda habits: RuleAgent(Shy())),
        "it ended as failed: .*do not look",
    ),
}


async def test_the_toy_keeps_the_contract() -> None:
    await check_task(bouquet_task())


@pytest.mark.parametrize("name", BROKEN)
async def test_what_a_task_breaks_is_said(name: str) -> None:
    task, why = BROKEN[name]
    with pytest.raises(AssertionError, match=why):
        await check_task(task, instances=2)


@pytest.mark.parametrize(
    ("key_of", "why"),
    [
        (lambda cell: None, "instance .* of seed 1 has no problem key"),
        (lambda cell: cell.instance, "of seed 2 has the problem key of another instance"),
        (
            lambda cell: f"{cell.seed} {cell.instance} {cell.agent}",
            "the problem key of instance .* whoever plays",
        ),
        (
            lambda cell: f"{cell.seed} {cell.instance} {cell.repeat}",
            "the problem key of instance .* whoever plays",
        ),
    ],
)
async def test_the_problem_key_goes_by_the_instance_alone(
    key_of: Callable[[Cell], str | None], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = KitTask.session

    def keyed(task: KitTask[Garden], cell: Cell, setting: Setting) -> Session:
        made = session(task, cell, setting)
        opened = msgspec.structs.replace(made.opened, problem=key_of(cell))
        return msgspec.structs.replace(made, opened=opened)

    monkeypatch.setattr(KitTask, "session", keyed)
    with pytest.raises(AssertionError, match=why):
        await check_task(bouquet_task(), instances=2)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("auto", "works without a human: the automated baseline"),
        (HUMAN_ALONE, "works without an agent: the other baseline"),
    ],
)
async def test_a_task_has_both_baselines(kind: str, why: str) -> None:
    task = bouquet_task()
    task.agents = {name: text for name, text in task.agents.items() if name != kind}
    with pytest.raises(AssertionError, match=why):
        await check_task(task)
