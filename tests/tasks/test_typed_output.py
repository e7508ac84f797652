"""Outputs of an exact form, which models give by their parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from asked import Answers, calls, conversation
from duolog.agents.model_mind import ModelMind
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON
from duolog.engine.models.prompting.actions import ActionSpace
from duolog.engine.models.protocol import ToolCall
from duolog.engine.session.decisions import Submit
from duolog.engine.session.view import View
from duolog.engine.task import Brief, find_task, output_action
from duolog.examples.data.facts import Names
from duolog.examples.data.report import ReportReader
from duolog.examples.finance.plan import Plan, parse_plan, render_plan
from duolog.examples.proof.generator import best_document, make_instance
from duolog.examples.proof.proving.checker import check_section
from duolog.examples.proof.proving.document import read_document
from duolog.tasks.kit import KitTask

PROOF: Mapping[str, JSON] = {
    "sections": [
        {
            "kind": "Claim",
            "label": "B",
            "claim": "sum(2*i - 1) = n^2",
            "steps": [
                {"text": "(n^2) - (n^2 - 2*n + 1) = 2*n - 1", "reason": "expand"},
                {"text": "sum(2*i - 1) = n^2", "reason": "induction B.1"},
            ],
        }
    ]
}


def brief(task: str) -> Brief:
    found = find_task(task)
    assert isinstance(found, KitTask)
    return found.brief


FINANCE = brief("finance")


def submitted(task: str, content: JSON) -> str:
    """The text that is submitted if a model calls its tool with these parts."""
    space = ActionSpace([output_action(brief(task))])
    call = ToolCall(id="1", name="submit", arguments=json.dumps({"content": content}))
    [verb] = space.read_calls([call])
    assert isinstance(verb, Submit)
    assert isinstance(verb.content, str)
    return verb.content


def test_a_plan_is_written_from_its_numbers() -> None:
    text = submitted("finance", {"emergency": 24000, "stocks": 45})
    assert parse_plan(text).emergency == 24000
    assert text.splitlines()[-1] == "Stocks: 45%"


def test_a_proof_is_written_from_its_steps_which_name_themselves() -> None:
    document = read_document(submitted("proof", PROOF))
    assert [step.name for step in document["B"].steps] == ["B.1", "B.2"]
    assert check_section(document["B"], document) == []


def test_a_report_is_written_from_its_statements() -> None:
    stated: Sequence[JSON] = [
        {"states": "favourite", "region": "Holm", "product": "Mocha", "mean": 7.9, "answers": 64},
        {"states": "too few", "region": "Holm", "answers": 6},
        {"states": "dearer", "product": "Mocha", "region": "Holm", "percent": 25, "prices": 8},
        {"states": "same price", "product": "Mocha", "prices": 32},
        {
            "states": "ages differ",
            "product": "Mocha",
            "higher": "younger",
            "points": 1.6,
            "answers": 240,
        },
        {"states": "ages alike", "product": "Mocha", "answers": 240},
        {
            "states": "one channel",
            "product": "Mocha",
            "channel": "app",
            "points": 2.9,
            "answers": 98,
        },
        {"states": "no channel", "product": "Mocha", "answers": 240},
        {"states": "wrong rows", "table": "prices", "wrong": 11, "rows": 170},
        {"states": "assumption", "about": "pilot", "holds": True},
        {"states": "recommendation", "kind": "favourite", "about": "Holm", "answer": "Mocha"},
        {"states": "recommendation", "kind": "price", "about": "Mocha", "answer": "nowhere"},
        {"states": "recommendation", "kind": "age", "about": "Mocha", "answer": "alike"},
        {"states": "chart", "line": "Chart of Mocha by channel: app \u2587 2.9"},
    ]
    lines = submitted("data", {"lines": stated}).splitlines()
    reader = ReportReader(Names("coffee", ("Holm",), ("Mocha",)))
    assert len(lines) == len(stated)
    assert all(reader.read(line) is not None for line in lines)


@pytest.mark.parametrize(
    ("task", "content", "why"),
    [
        ("finance", "Emergency fund: 5", "content"),
        ("finance", {"emergency": "a lot"}, "emergency"),
        ("finance", {"savings": 5}, "savings"),
        ("finance", {"emergency": -5}, "'Emergency fund: -5' needs one number"),
        ("finance", {"stocks": 450}, "'Stocks: 450%' is more than a plan can hold"),
        ("data", {"lines": [{"states": "hunch"}]}, "lines"),
        ("data", {"lines": [{"states": "chart", "line": "nice"}]}, "'nice' is not a chart"),
        ("data", {"lines": [{"states": "remark", "text": "a\nb"}]}, "is not one line"),
        (
            "proof",
            {"sections": [{"kind": "Claim", "label": "B", "claim": "n is nice"}]},
            "Claim B: ",
        ),
        (
            "proof",
            {
                "sections": [
                    {
                        "kind": "Claim",
                        "label": "B",
                        "claim": "sum(2*i - 1) = n^2",
                        "steps": [{"text": "sum(2*i - 1) = n^2", "reason": "obvious"}],
                    }
                ]
            },
            "step B.1: 'obvious' is not a reason: write expand, cases mod 8",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_fix(task: str, content: JSON, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        submitted(task, content)
    assert why in str(refused.value)


@pytest.mark.parametrize("task", ["data", "finance", "proof"])
def test_rules_that_rehearse_a_model_give_the_parts_of_their_texts(task: str) -> None:
    texts = {
        "data": "Finding: a hunch.\nA remark.",
        "finance": render_plan(Plan(emergency=24000, stocks=45)),
        "proof": best_document(make_instance("0", 1)),
    }
    form = brief(task).form
    assert form is not None
    assert submitted(task, form.read(texts[task])) == texts[task]


async def test_a_model_that_errs_is_told_what_to_fix() -> None:
    wrong = json.dumps({"content": {"emergency": -5}})
    right = json.dumps({"content": {"emergency": 5}})
    answers = Answers(calls(("submit", wrong)), calls(("submit", right)))
    mind = ModelMind(conversation(answers), FINANCE)
    [verb] = (await mind.act(View("agent", "agent"))).verbs
    assert isinstance(verb, Submit)
    assert "Emergency fund: 5\n" in str(verb.content)
    assert "needs one number after the colon" in answers.prompts[1]
