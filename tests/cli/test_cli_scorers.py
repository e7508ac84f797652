"""Which scorers can measure a recorded session again: Duolog's own, and those of its task."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from duolog.cli import scoring as module
from duolog.cli.scoring import ScorerFinder
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.engine.scorers.protocol import Scorer
from duolog.scoring.scorers.registry import ScoringSetting, find_scorer, scorer_names
from duolog.scoring.scorers.utility import Missing, SnapshotUtility

OWN = ["feedback", "resolution", "resolution", "retention", "rule-judge", "rule-judge"]


class Cooking:
    """A task that can score what was run before, on data that it has."""

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        if opened.instance == "elsewhere":
            raise InvalidInput("no such data here")
        return [SnapshotUtility("taste", "2", lambda taken, opened: Missing("nobody eats"))]


async def names(finder: ScorerFinder, task: str, instance: str) -> list[str]:
    opened = SessionOpened(task=task, instance=instance, participants=(), clock="utc")
    async with open_log("memory://") as log:
        await log.append("s", [Draft(opened, "engine", "environment", 0.0)])
        scorers = await finder.of(log, "s")
    assert [scorer.ref.name for scorer in scorers[: len(OWN)]] == OWN
    return [scorer.ref.name for scorer in scorers[len(OWN) :]]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Installs the task ``cooking``; gives the names that are looked for."""
    asked: list[str] = []

    def find(opened: SessionOpened) -> SimpleNamespace:
        name = opened.task
        asked.append(name)
        if name == "cooking":
            return SimpleNamespace(task=Cooking())
        if name == "plain":
            return SimpleNamespace(task=object())
        raise InvalidInput(f"unknown task {name!r}")

    monkeypatch.setattr(module, "recorded_task", find)
    return asked


@pytest.fixture
def finder() -> ScorerFinder:
    """Looks up installed scorers on the disk, so before the event loop runs."""
    return ScorerFinder()


class Plugin:
    def __init__(self, *, asks_model: bool) -> None:
        self.asks_model = asks_model

    def make(self, setting: ScoringSetting) -> Scorer:
        if setting.opened.instance == "elsewhere":
            raise InvalidInput("not for this session")
        return SnapshotUtility("brevity", "1", lambda taken, opened: Missing("nobody reads"))


@pytest.fixture
def extended(monkeypatch: pytest.MonkeyPatch) -> ScorerFinder:
    """A finder for a package that offers two more scorers, one of which asks a model."""
    known = {"brevity": Plugin(asks_model=False), "xxl": Plugin(asks_model=True)}
    monkeypatch.setattr(module, "scorer_names", lambda: [*scorer_names(), *known])
    monkeypatch.setattr(module, "find_scorer", lambda name: known.get(name) or find_scorer(name))
    return ScorerFinder()


async def test_a_scorer_that_is_installed_checks_what_it_measured(
    tasks: list[str], extended: ScorerFinder
) -> None:
    """What ``score`` finds by name, the check finds; what asks a model, it does not run."""
    assert await names(extended, "plain", "here") == ["brevity"]
    assert await names(extended, "plain", "elsewhere") == []


@pytest.mark.parametrize(
    ("task", "instance", "expected"),
    [
        ("cooking", "here", ["taste"]),
        ("cooking", "elsewhere", []),
        ("plain", "here", []),
        ("not installed", "here", []),
    ],
)
async def test_the_scorers_of_a_task(
    task: str, instance: str, expected: list[str], tasks: list[str], finder: ScorerFinder
) -> None:
    assert await names(finder, task, instance) == expected
    assert tasks == [task]


async def test_a_task_is_looked_for_once(tasks: list[str], finder: ScorerFinder) -> None:
    opened = SessionOpened(task="cooking", instance="1", participants=(), clock="utc")
    async with open_log("memory://") as log:
        for session in ("a", "b"):
            await log.append(session, [Draft(opened, "engine", "environment", 0.0)])
            await finder.of(log, session)
    assert tasks == ["cooking"]


async def test_a_session_without_an_opening(tasks: list[str], finder: ScorerFinder) -> None:
    async with open_log("memory://") as log:
        await log.append("s", [Draft(MessageSent(text="hello"), "ann", "human", 0.0)])
        assert len(await finder.of(log, "s")) == len(OWN)
    assert tasks == []
