"""Each shipped task with a model in every seat: it acts all the time, and its acts are carried out."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import anyio
import pytest
from duolog.engine.events import JSON, MessageSent, ModelCalled, SessionClosed, SimulatorFlagged
from duolog.engine.log.open import open_log
from duolog.engine.models import ModelReply, ModelRequest, Models, ScriptedModel, Tool, ToolCall
from duolog.engine.models.prompting.json_schema import load_library
from duolog.engine.models.rehearsal import Rehearsal
from duolog.engine.records import Record
from duolog.engine.rounds import is_act
from duolog.engine.session.runner import Session, run_session
from duolog.engine.task import Cell, Setting, find_task

TASKS = ("data", "finance", "proof", "travel", "tutoring")
AGENTS = ("one-stage", "two-stage", "careful", "adaptive")
ENOUGH = 10
"""Acts after which the person is content."""


class Everybody:
    """A model in all seats: it takes what it is offered, one after the other, with arguments that fit."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self.composed: Counter[str] = Counter()
        self.offered: dict[str, set[str]] = {"human": set(), "agent": set()}
        self.reconsidered = 0

    def answer(self, request: ModelRequest) -> ModelReply | str:
        system, prompt = request.messages[0].content, request.messages[-1].content
        role = "human" if system.startswith("You play ") else "agent"
        if "While you were at that, there was news" in prompt:
            self.reconsidered += 1
            return "1"
        if role == "human" and "Your choices are:" in prompt:
            return self._choice(prompt)
        if '"Plan:"' in prompt:
            return f"Thought: Let us see.\nPlan: {self._random.choice((1, 2, 2))}"
        if "how far have the others" in prompt:
            return "3\nIt goes on."
        if len(request.messages) == 1:
            return "none"  # a judge is asked
        self.composed[role] += 1
        if request.tools:
            return self._call(role, request.tools)
        text = (
            f"What about point {sum(self.composed.values())} of the list, which is not clear to me?"
        )
        return f"Message: {text}" if '"Message:"' in prompt else text

    def _choice(self, prompt: str) -> str:
        """Any choice of the person, until it has done enough."""
        listed = prompt.rpartition("Your choices are:")[2]
        found = re.finditer(r"^(\d)\. ([\w ]+)", listed, re.MULTILINE)
        offered = {one[2]: one[1] for one in found}
        ends = {"Finish", "Do nothing", "Give up"}
        if self.composed["human"] >= ENOUGH:
            return offered.get("Finish", offered["Do nothing"])
        return self._random.choice([n for title, n in offered.items() if title not in ends])

    def _call(self, role: str, tools: Sequence[Tool]) -> ModelReply:
        self.offered[role] |= {tool.name for tool in tools}
        tool = self._random.choice([one for one in tools if one.name not in ("wait", "finish")])
        found = self._fitting(tool.parameters, tool.parameters)
        return ModelReply(
            text="Thought: Let us see.",
            tool_calls=(ToolCall(id="1", name=tool.name, arguments=json.dumps(found)),),
        )

    def _fitting(self, schema: JSON, root: Mapping[str, JSON]) -> JSON:
        """A value that fits a schema."""
        assert isinstance(schema, Mapping)
        if isinstance(schema.get("$ref"), str):
            definitions = root["$defs"]
            assert isinstance(definitions, Mapping)
            return self._fitting(definitions[str(schema["$ref"]).rpartition("/")[2]], root)
        examples = schema.get("examples")
        if isinstance(examples, list | tuple):
            example: JSON = self._random.choice(examples)
            return example
        options = schema.get("enum") or schema.get("anyOf")
        if isinstance(options, list | tuple):
            chosen = self._random.choice(options)
            return chosen if "enum" in schema else self._fitting(chosen, root)
        properties, items = schema.get("properties"), schema.get("items")
        match schema.get("type"):
            case "object" if isinstance(properties, Mapping):
                return {name: self._fitting(part, root) for name, part in properties.items()}
            case "array":
                return [self._fitting(items, root)]
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
            case "null":
                return None
        return "A" if "pattern" in schema else "something"


def play(task: str, agent: str) -> tuple[Everybody, list[Record]]:
    """The trace of a session with a model in both seats."""
    model = Everybody()
    setting = Setting(models=Models(ScriptedModel(model.answer)))
    judge = "m" if task == "tutoring" else None
    cell = Cell(
        agent=agent,
        user="proactive",
        instance="1",
        seed=11,
        model="m",
        user_model="m",
        judge_model=judge,
    )
    return model, recorded(find_task(task).session(cell, setting))


def recorded(session: Session) -> list[Record]:
    """The trace of a session, once it has run."""
    load_library()  # for the arguments of actions

    async def run() -> list[Record]:
        async with open_log("memory://") as log:
            await run_session(log, session)
            return [record async for record in log.read(session.id)]

    return anyio.run(run)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("task", TASKS)
def test_nine_in_ten_composed_acts_of_people_are_carried_out(task: str, agent: str) -> None:
    model, trace = play(task, agent)
    assert model.reconsidered  # the agent acted while they typed
    assert model.composed["human"] >= ENOUGH
    request = next(r for r in trace if r.role == "human" and isinstance(r.event, MessageSent))
    done = [r for r in trace if r.role == "human" and is_act(r) and r is not request]
    left = Counter(r.role for r in trace if r.kind == "DraftDropped")
    assert len(done) + left["human"] >= 0.9 * model.composed["human"]


@pytest.mark.parametrize("task", TASKS)
def test_rules_that_play_models_for_an_estimate_reply_with_what_models_are_offered(
    task: str,
) -> None:
    rehearsal = Rehearsal()
    setting = Setting(models=Models(rehearsal), rehearsal=rehearsal)
    cell = Cell(
        agent="one-stage",
        user="proactive",
        instance="1",
        seed=11,
        model="m",
        user_model="m",
        judge_model="m" if task == "tutoring" else None,
    )
    trace = recorded(find_task(task).session(cell, setting))
    calls = [(r.role, r.event.purpose) for r in trace if isinstance(r.event, ModelCalled)]
    assert not [call for call in calls if call[1].endswith("again")]  # all replies could be read
    assert ("human", "rate") in calls
    assert any(isinstance(r.event, SessionClosed) and r.role == "human" for r in trace)
    faults = [r.event for r in trace if isinstance(r.event, SimulatorFlagged)]
    assert "invention" not in {fault.fault for fault in faults}  # results are worked out


def test_students_are_not_offered_what_only_tutors_can_do() -> None:
    model, _ = play("tutoring", "one-stage")
    assert {"Solve", "Check", "MakeProblem", "Teach"} <= model.offered["agent"]
    assert model.offered["human"] & {"Solve", "Check", "MakeProblem", "Teach"} == set()
