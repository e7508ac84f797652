"""How the kinds of agent ask their mind."""

from __future__ import annotations

import pytest
from duolog.agents.kinds import KINDS, make_agent
from duolog.agents.mind import Intent
from duolog.engine.errors import InvalidInput
from duolog.engine.session.decisions import NOTHING, Act, Decision, Say
from duolog.engine.session.view import View


class Mind:
    """Notes what it is asked for."""

    def __init__(self, intent: Intent = "wait") -> None:
        self.intent = intent
        self.asked: list[str] = []

    async def step(self, view: View, *, alone: bool) -> Decision:
        self.asked.append("alone" if alone else "together")
        return Decision((Act("look"),))

    async def plan(self, view: View) -> Intent:
        self.asked.append("plan")
        return self.intent

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        self.asked.append("message")
        return Decision((Say("hello"),))

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        return None

    async def report(self, view: View, *, final: bool) -> Decision:
        self.asked.append("final report" if final else "report")
        return Decision((Say("so far"),))

    async def act(self, view: View) -> Decision:
        self.asked.append("act")
        return Decision((Act("look"),))

    def estimate(self, view: View) -> float | None:
        return None


async def test_the_automated_agent_is_asked_without_teammates() -> None:
    mind = Mind()
    decision = await make_agent("auto", mind).decide(View("agent", "agent"))
    assert mind.asked == ["alone"]
    assert decision == Decision((Act("look"),))


async def test_the_one_stage_agent_decides_in_one_step_with_teammates() -> None:
    mind = Mind()
    await make_agent("one-stage", mind).decide(View("agent", "agent"))
    assert mind.asked == ["together"]


@pytest.mark.parametrize(
    ("intent", "asked", "decision"),
    [
        ("message", ["plan", "message"], Decision((Say("hello"),))),
        ("act", ["plan", "act"], Decision((Act("look"),))),
        ("wait", ["plan"], NOTHING),
    ],
)
async def test_the_two_stage_agent_plans_first_and_composes_just_that(
    intent: Intent, asked: list[str], decision: Decision
) -> None:
    mind = Mind(intent)
    assert await make_agent("two-stage", mind).decide(View("agent", "agent")) == decision
    assert mind.asked == asked


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="unknown agent 'three-stage'; did you mean"):
        make_agent("three-stage", Mind())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_on_offer_can_be_made(kind: str) -> None:
    assert make_agent(kind, Mind()) is not None
