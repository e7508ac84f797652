"""The judge of teaching: reads what a tutor on a model explains, and credits it as acts of teaching."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.agents.mind import Intent
from duolog.benchmarks.teaching import agreement, by_model, by_rules, explanations
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ActionResolved, ActionTaken, MessageSent, ProfileChanged
from duolog.engine.models.gateway import Models
from duolog.engine.models.prompting.conversation import ModelConversation, ModelUse
from duolog.engine.models.protocol import ModelReply, ModelRequest
from duolog.engine.session.decisions import Act, Decision, Say
from duolog.engine.session.limits import Limits
from duolog.engine.session.view import View
from duolog.engine.task import Cell, Setting
from duolog.examples.tutoring.maths.rules import MISCONCEPTIONS
from duolog.examples.tutoring.student.learning import TEACH
from duolog.examples.tutoring.tutor.judge import JudgedTutor, judge_prompt, read_verdict
from duolog.examples.tutoring.tutoring_task import tutoring_task
from duolog.testing import by, played, records_of

LABELS = Path(__file__).parent / "explanations.json"
GOOD = "Lesson: subtract-negative | explanation | 3 - (-4) | drops-double-minus"


class Caller:
    """Answers with one reply after another, and keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, ModelRequest]] = []

    async def ask(self, request: ModelRequest, *, purpose: str) -> ModelReply:
        self.asked.append((purpose, request))
        return ModelReply(text=self._replies.pop(0))


class Tutor:
    """Always decides the same."""

    def __init__(self, *verbs: Say | Act) -> None:
        self._decision = Decision(verbs)

    async def step(self, view: View, *, alone: bool) -> Decision:
        return self._decision

    async def plan(self, view: View) -> Intent:
        return "message"

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        return self._decision

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        return self._decision

    async def report(self, view: View, *, final: bool) -> Decision:
        return self._decision

    def estimate(self, view: View) -> float | None:
        return None

    async def act(self, view: View) -> Decision:
        return self._decision


def view() -> View:
    seen = View("agent", "agent", seed=1)
    for record in records_of(
        by("agent", MessageSent(text="What is 3 - (-4)?"), actor="agent"),
        by("human", MessageSent(text="-1"), actor="user"),
    ):
        seen.feed(record)
    return seen


def judged(caller: Caller, *verbs: Say | Act) -> JudgedTutor:
    return JudgedTutor(Tutor(*verbs), ModelConversation(caller, ModelUse(model="judge")))


async def test_what_is_explained_in_free_words_is_recorded_as_teaching_before_it() -> None:
    caller = Caller(GOOD)
    told = Say("Two minus signs in a row turn into a plus, so walk to the right.")
    decision = await judged(caller, told).message(view())
    assert decision.verbs == (
        Act(
            TEACH,
            {
                "skill": "subtract-negative",
                "example": "3 - (-4)",
                "how": "explanation",
                "refutes": "drops-double-minus",
            },
        ),
        told,
    )
    [(purpose, request)] = caller.asked
    assert purpose == "judge teaching"
    assert told.text in str(request.messages[0].content)
    assert "What is 3 - (-4)?" in str(request.messages[0].content)


async def test_what_teaches_nothing_is_only_said() -> None:
    told = Say("Well done!")
    decision = await judged(Caller("Nothing."), told).report(view(), final=False)
    assert decision.verbs == (told,)


async def test_a_tutor_who_takes_the_act_is_not_judged_besides() -> None:
    act = Act(TEACH, {"skill": "order", "example": "2 + 3 × 4"})
    caller = Caller()
    decision = await judged(caller, act, Say("Times first.")).step(view(), alone=False)
    assert decision.verbs[0] == act
    assert not caller.asked


async def test_a_malformed_verdict_is_answered_with_what_to_mend_and_asked_again() -> None:
    caller = Caller("Lesson: magic | explanation | 3 - (-4) | -", GOOD)
    decision = await judged(caller, Say("Two minuses are a plus.")).message(view())
    assert [type(verb) for verb in decision.verbs] == [Act, Say]
    assert [purpose for purpose, _ in caller.asked] == ["judge teaching", "judge teaching again"]
    assert "magic" in str(caller.asked[1][1].messages[-1].content)


async def test_a_verdict_that_stays_unreadable_credits_nothing() -> None:
    told = Say("Two minuses are a plus.")
    bad = "Lesson: order"
    decision = await judged(Caller(bad, bad, bad), told).message(view())
    assert decision.verbs == (told,)


@pytest.mark.parametrize(
    "line",
    [
        "Lesson: order | explanation | 2 + 3",
        "Lesson: order | shouting | 2 + 3 × 4 | -",
        "Lesson: order | explanation | 3 - (-4) | -",
        "Lesson: order | explanation | 2 + 3 × 4 | drops-double-minus",
    ],
)
def test_a_lesson_that_cannot_be_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput):
        read_verdict(line)


def test_the_rubric_names_every_skill_and_misconception() -> None:
    prompt = judge_prompt("Times first.", "")
    assert all(f"- {one.component}:" in prompt for one in MISCONCEPTIONS.values())
    assert all(f"- {name} (" in prompt for name in MISCONCEPTIONS)
    assert "Times first." in prompt


def test_the_labels_are_apart_from_the_rubric_and_from_what_tutors_on_rules_say() -> None:
    labelled = explanations(LABELS)
    assert len({one.text for one in labelled}) == len(labelled) >= 40
    assert all(one.text not in judge_prompt("", "") for one in labelled)
    skills = {one.component for one in MISCONCEPTIONS.values()}
    assert {skill for one in labelled for skill in one.skills} == skills
    kinds = {kind for _, _, kind in json.loads(LABELS.read_text(encoding="utf-8"))}
    assert kinds == {"explanation", "example", "hint", ""}


def test_the_agreement_of_the_rules_is_as_documented() -> None:
    found = agreement((by_rules(one.text), one.skills) for one in explanations(LABELS))
    assert [round(one, 2) for one in found] == [0.92, 0.85, 0.81]


class Fake:
    """A model that explains in its own words, and a judge that finds one lesson in that."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        prompt = str(request.messages[-1].content)
        if "Lesson: SKILL" in prompt:
            return ModelReply(text=GOOD)
        if "Plan:" in prompt:
            return ModelReply(text="Plan: 1")
        return ModelReply(text="Message: Two minuses are a plus. What do you get for number 1?")


async def test_a_student_learns_from_a_tutor_on_a_model_only_by_what_the_judge_finds() -> None:
    cell = Cell(agent="two-stage", user="feedback", model="m", instance="0", seed=3)
    setting = Setting(
        models=Models(Fake()), uses={"m": ModelUse(model="m")}, limits=Limits(rounds=3)
    )
    one = await played(tutoring_task().session(cell, setting))
    trace = [record.event for record in one.trace]
    taught = [event for event in trace if isinstance(event, ActionTaken) and event.name == TEACH]
    assert {event.arguments["skill"] for event in taught} == {"subtract-negative"}
    assert all(event.outcome == "ok" for event in trace if isinstance(event, ActionResolved))
    assert any(
        "subtract-negative" in event.reason for event in trace if isinstance(event, ProfileChanged)
    )


async def test_the_agreement_of_a_model_is_measured_with_the_same_rubric() -> None:
    text = "Two minuses are a plus."
    assert await by_model(Fake(), "m", text) == {"subtract-negative"}
