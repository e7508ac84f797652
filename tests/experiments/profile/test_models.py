"""Scripted models of known character, behind a real server, are told apart, and the good one is not accused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from duolog.agents.habits import USUAL
from duolog.benchmarks.profiles.__main__ import EXPECTED
from duolog.benchmarks.profiles.characters import CHARACTERS, Character, Planted
from duolog.engine.models.traffic.budget import Spending
from duolog.examples.travel.rule_agent import travel_agent
from duolog.experiments.profile.playing import plan_profile, profile, read_profile
from duolog.experiments.profile.suite import Suite
from openai_server import Answer, Body, OpenAIServer
from travel_model import play

SMALL = Suite(
    name="small",
    tasks=("travel",),
    users=("proactive",),
    scaffolds=("one-stage",),
    problems=1,
    seed=50,
)


def answer(body: Body) -> Answer:
    """The model of a character: its name says which."""
    name = body["model"].rpartition("/")[2].replace("-", " ")
    character: Character = next(one for one in CHARACTERS if one == name)
    return play(body, lambda: Planted(travel_agent(USUAL), character))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with OpenAIServer(answer=answer).running() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize(
    "character", ["good", "plateau", "loop", "early polish", "shifted", "opaque", "flood"]
)
def test_a_scripted_model_is_found_to_be_what_it_is(
    character: Character, server: OpenAIServer, tmp_path: Path
) -> None:
    plan = plan_profile(
        f"openai/{character.replace(' ', '-')}",
        suite=SMALL,
        log=str(tmp_path / "p.db"),
        api_base=server.url,
    )
    found, done = anyio.run(profile, plan)
    assert done.left == 0
    assert found.diagnoses["one-stage"].kind == EXPECTED[character]
    assert found.played == found.planned == 3
    calls = len(server.requests)
    assert anyio.run(read_profile, plan) == found
    assert len(server.requests) == calls


def test_a_budget_stops_the_suite_and_a_larger_one_goes_on(
    server: OpenAIServer, tmp_path: Path
) -> None:
    def planned(budget: float) -> tuple[int, Spending | None]:
        plan = plan_profile(
            "openai/gpt-4o",
            suite=SMALL,
            log=str(tmp_path / "p.db"),
            api_base=server.url,
            budget=budget,
        )
        found, done = anyio.run(profile, plan)
        assert found.played + done.left == found.planned
        return done.left, done.spent

    server.answer = play
    left, spent = planned(0.01)
    assert left > 0
    assert spent is not None
    assert 0 < spent.cost < 0.1
    assert planned(100.0)[0] == 0
