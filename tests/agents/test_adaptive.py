"""The adaptive agent: it sees its view only, and lets the human's effort decide who leads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from duolog.agents.adaptive import Adaptive, Outlook
from duolog.agents.mind import Intent
from duolog.engine.events import JSON
from duolog.engine.records import Record
from duolog.engine.session.decisions import NOTHING, Act, Decision, Note, Say
from duolog.engine.session.view import View, Visibility
from duolog.scoring.control import ControlRules
from duolog.testing.records import RecordWriter

ASKED = Decision((Say("What is your budget?"),))
REPORTED = Decision((Say("Please have a look."),))
HANDED_OVER = Decision((Say("It is yours."),))
WORK = Decision((Act("search"),))


class Mind:
    """Wants to message, unless it is told otherwise."""

    def __init__(self, intent: Intent = "message") -> None:
        self.intent = intent

    async def step(self, view: View, *, alone: bool) -> Decision:
        raise AssertionError("an adaptive agent works in two stages")

    async def plan(self, view: View) -> Intent:
        return self.intent

    async def message(self, view: View) -> Decision:
        return ASKED

    async def report(self, view: View, *, final: bool) -> Decision:
        return HANDED_OVER if final else REPORTED

    async def act(self, view: View) -> Decision:
        return WORK


def seen(records: Sequence[Record]) -> View:
    """The view of ``bot`` after these records."""
    view, visibility = View("bot", "agent"), Visibility("bot")
    for record in records:
        visible = visibility.see(record)
        if visible is not None:
            view.feed(visible)
    return view


def played(steps: str) -> View:
    """``h``: the human speaks, ``v``: vaguely, ``a``: the agent speaks, ``d``: it submits."""
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    for step in steps:
        match step:
            case "h":
                script.human("Two cities, please.")
                script.rated(1, 1, judge=None)  # for nobody's eyes but the human's
            case "v":
                script.human("Whatever, you decide.")
            case "a":
                script.agent("Well.")
            case "d":
                script.output(f"draft {len(script.records)}")
    return seen(script.records)


async def decided(agent: Adaptive, view: View) -> tuple[str, Decision]:
    """The note on why, and the rest of a decision."""
    decision = await agent.decide(view)
    note, *verbs = decision.verbs
    assert isinstance(note, Note)
    return note.text, Decision(tuple(verbs))


@pytest.mark.parametrize(
    ("steps", "rules", "decision", "why"),
    [
        ("h", None, ASKED, "Ask: there is no output yet"),
        ("hah", ControlRules(questions=1), WORK, "Act: enough was asked"),
        ("havav", None, WORK, "Act: the human waves questions away"),
        ("hd", None, REPORTED, "Defer: there is a first output"),
        ("hdahd", None, REPORTED, "Defer: what the human said paid"),
        ("hdah", None, ASKED, "Ask: what the human said changed nothing"),
        ("hdahah", ControlRules(tolerance=1), HANDED_OVER, "Hand over: 1 round in a row"),
    ],
)
async def test_where_it_would_message_the_advice_decides(
    steps: str, rules: ControlRules | None, decision: Decision, why: str
) -> None:
    note, rest = await decided(Adaptive(Mind(), rules), played(steps))
    assert rest == decision
    assert note.startswith(why)


async def test_work_comes_first_and_waiting_is_waiting() -> None:
    view = played("hd")
    assert await Adaptive(Mind("act")).decide(view) == WORK
    assert await Adaptive(Mind("wait")).decide(view) == NOTHING


async def test_it_looks_at_each_record_once_however_often_it_decides() -> None:
    agent, fresh = Adaptive(Mind()), Adaptive(Mind())
    script = RecordWriter()
    script.opened()
    for turn in range(6):
        script.human("More, please.")
        view = seen(script.records)
        assert await agent.decide(view) == await agent.decide(view)
        script.output(f"draft {turn}") if turn % 2 else script.agent("Well.")
        view = seen(script.records)
        once = await agent.decide(view)
    assert once == await fresh.decide(view)


@pytest.mark.parametrize("config", [{}, {"utility": "trips"}])
def test_each_update_of_the_output_is_a_gain_to_it_whoever_scores(config: dict[str, JSON]) -> None:
    """That a scorer is named, whose scores it cannot see, makes no difference."""
    script = RecordWriter()
    script.opened(config=config)
    outlook = Outlook()
    for turn in range(4):
        script.human("More, please.")
        script.output(f"draft {turn}")
        script.agent("Done.")
        advice = outlook.look(seen(script.records), worked=True)
    assert advice is not None
    assert advice.move == "defer"
    assert advice.why == "what the human said paid"


def test_it_knows_nothing_that_its_view_does_not_show() -> None:
    """Ratings and utility are in the log, and make no difference."""
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("hello")
    draft = script.output("draft")
    script.scored(0.1, snapshot=draft)
    script.rated(1, 1, judge=None)
    script.human("go on")
    with_scores = Outlook().look(seen(script.records))
    bare = [r for r in script.records if r.kind not in ("UtilityScored", "ProgressRated")]
    assert with_scores == Outlook().look(seen(bare))
    assert Outlook().look(View("bot", "agent")) is None
