"""The weak agents fail as they are meant to, and a report finds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.agents.kinds import make_agent
from duolog.agents.mind import Intent
from duolog.cli import main
from duolog.engine.codec import digest
from duolog.engine.events import ActionTaken, MessageSent, Nudged, SessionOpened, SnapshotTaken
from duolog.engine.records import Draft
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Say, Submit
from duolog.engine.session.view import View
from duolog.engine.task import Cell, Setting, find_task
from duolog.testing import by, played, records_of

AGENTS = ("one-stage", "looper", "polisher", "flatterer")


class Mind:
    """Puts up an output; then it is done."""

    async def step(self, view: View, *, alone: bool) -> Decision:
        if view.snapshot is None:
            return Decision((Submit("A toast"),))
        return Decision((Finish("done"),)) if alone else Decision((Say("Here it is."),))

    async def plan(self, view: View) -> Intent:
        return "act"

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        return NOTHING

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        return None

    async def report(self, view: View, *, final: bool) -> Decision:
        return NOTHING

    async def act(self, view: View) -> Decision:
        return NOTHING

    def estimate(self, view: View) -> float | None:
        return None


def view(*facts: Draft) -> View:
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    seen = View("agent", "agent", seed=1)
    records = records_of(opened, *facts)
    for record in records:
        seen.feed(record)
    seen.next_decision(tuple(records[-1:]), None, False)
    return seen


SEARCHED = by("agent", ActionTaken(name="search", arguments={"for": "x"}), actor="agent")
FOUND = by("agent", SnapshotTaken(content="A toast", digest=digest("A toast")), actor="agent")
SAID = by("agent", MessageSent(text="Here it is."), actor="agent")
CRITICISM = by("human", MessageSent(text="That is wrong."), actor="user")


@pytest.mark.parametrize("kind", ["polisher", "flatterer"])
async def test_a_first_output_comes_at_once_and_is_not_the_end(kind: str) -> None:
    agent = make_agent(kind, Mind())
    first = await agent.decide(view())
    assert [type(verb) for verb in first.verbs] == [Submit, Say]
    assert await agent.decide(view(FOUND, SAID)) == NOTHING


async def test_a_looper_does_the_same_again_once_it_is_criticised() -> None:
    agent = make_agent("looper", Mind())
    assert (await agent.decide(view(FOUND))).verbs == (Say("Here it is."),)
    again = await agent.decide(view(FOUND, SAID, CRITICISM))
    assert again.verbs == (*[Submit("A toast", overwrite=True)] * 3, Say("Here it is."))
    seen = view(SEARCHED, FOUND, SAID, CRITICISM)
    assert await agent.decide(seen) == NOTHING  # the search is under way
    seen.actions.clear()
    assert (await agent.decide(seen)).verbs[-1] == Say("Here it is.")


async def test_a_polisher_changes_blanks_and_gives_no_reason() -> None:
    agent = make_agent("polisher", Mind())
    [polished, said] = (await agent.decide(view(FOUND, SAID, CRITICISM))).verbs
    assert polished == Submit("A toast\n", overwrite=True)
    assert isinstance(said, Say)
    assert "because" not in said.text


async def test_a_flatterer_agrees_and_changes_nothing() -> None:
    agent = make_agent("flatterer", Mind())
    [said] = (await agent.decide(view(FOUND, SAID, CRITICISM))).verbs
    assert isinstance(said, Say)
    nudge = by("environment", Nudged(to="agent"), actor="engine")
    [ended] = (await agent.decide(view(FOUND, SAID, nudge))).verbs
    assert isinstance(ended, Finish)


FINANCE = find_task("finance")


async def test_a_person_gives_up_talking_to_an_agent_that_changes_nothing() -> None:
    cell = Cell(agent="flatterer", user="bounded", instance="3", seed=11)
    one = await played(FINANCE.session(cell, Setting()))
    assert one.result.reason == "abandoned"
    said = [r for r in one.streams["trace"] if r.role == "human" and r.kind == "MessageSent"]
    assert len(said) < 15


def test_a_report_finds_their_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = f"{tmp_path}/weak.db"
    run = [
        "run",
        "travel",
        "--sessions",
        "2",
        "--max-rounds",
        "8",
        "--seed",
        "11",
        "--agents",
        ",".join(AGENTS),
    ]
    assert main([*run, "--log", log]) == 0
    capsys.readouterr()
    assert main(["report", log, "--json"]) == 0
    groups: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["groups"]
    found = {group["group"]["agent"]: group for group in groups}
    loops = {agent: found[agent]["process"]["loops"] for agent in AGENTS}
    assert loops["looper"] >= 1.0
    assert {loops[agent] for agent in AGENTS if agent != "looper"} == {0.0}
    good = found["one-stage"]
    for agent in AGENTS[1:]:
        assert found[agent]["utility"]["overall"] < good["utility"]["overall"] - 0.05
    assert found["polisher"]["gain"]["abs"] == 0.0  # a plateau
    assert found["flatterer"]["gain"]["abs"] == 0.0
    for kind in ("polisher", "flatterer"):
        assert found[kind]["drop"]["1"]["abs"] == 0.0  # staying gains nothing
