"""Process measures: initiatives, confirmations and interruptions, and when nothing can be said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Participant,
)
from duolog.scoring.process import Process, ProcessFold, initiative_entropy
from duolog.scoring.turns import Label
from duolog.testing.records import AGENT, HUMAN, RecordWriter


def measured(script: RecordWriter) -> Process:
    fold = ProcessFold()
    for record in script.records:
        fold.feed(record)
    return fold.measures


@pytest.mark.parametrize(
    ("counts", "entropy"),
    [
        ([5, 5], 1.0),
        ([3, 3, 3], 1.0),
        ([1, 3], 0.8112781244591328),  # -(1/4 log2 1/4 + 3/4 log2 3/4)
        ([4, 0], 0.0),
        ([4, 2, 0], 0.0),
        ([0, 0], 0.0),
        ([4], None),
        ([], None),
    ],
)
def test_initiative_entropy(counts: list[int], entropy: float | None) -> None:
    got = initiative_entropy(counts)
    assert got == (entropy if entropy is None else pytest.approx(entropy, abs=1e-12))


def test_process_measures_by_hand() -> None:
    script = RecordWriter()
    script.opened(participants=(HUMAN, AGENT, Participant(name="env", role="environment")))
    script.human("Please plan a trip to Rome.")  # initiative
    script.agent("Would you like to fly there?")  # initiative, asks
    script.human("Yes.")  # answers
    script.agent("Should I book it?")  # initiative, asks
    script.human("The hotel should have a pool.")  # initiative, answers nothing
    asked = script.agent(ApprovalAsked(question="May I book the hotel?"))  # initiative, asks
    script.human(ApprovalGiven(asked=asked.version, approved=True))  # answers
    again = script.agent(ApprovalAsked(question="And the flight?"))  # initiative, asks
    script.human(ApprovalGiven(asked=again.version, approved=False))  # answers
    flight = script.agent(ActionTaken(name="book"))
    script.human("Wait, please stop booking.")  # halts, interrupts
    script.add(ActionResolved(action=flight.version, outcome="ok"), "env", "environment")
    script.human("ok")
    fold = ProcessFold()
    for record in script.records:
        fold.feed(record)
    got = fold.measures
    assert got.initiatives == {"ann": 2, "bot": 4}
    assert got.initiative_entropy == pytest.approx(initiative_entropy([2, 4]))
    assert (got.confirmations_asked, got.confirmations_answered) == (4, 3)
    assert (got.approved, got.denied) == (1, 1)
    assert (got.halts, got.interruptions) == (1, 1)


def test_measurements_change_no_process_measure() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please plan a trip.")
    before, after = ProcessFold(), ProcessFold()
    for record in script.records:
        before.feed(record)
        after.feed(record)
    after.feed(script.rated(1, 3))
    assert after.measures == before.measures


def test_another_annotator_may_tell_utterances_apart() -> None:
    fold = ProcessFold(lambda turn: frozenset[Label]({"asks"} if "!" in turn.text else ()))
    script = RecordWriter()
    script.opened()
    fold.feed(script.records[0])
    fold.feed(script.human("go!"))
    fold.feed(script.agent("where to?"))
    assert fold.measures.initiatives == {"ann": 1, "bot": 0}


def test_an_agent_alone_has_no_process() -> None:
    script = RecordWriter()
    script.opened(participants=(AGENT,))
    script.agent("Which dates suit you?")
    assert measured(script) == Process(initiatives={"bot": 1})


def test_the_sides_are_known_from_who_spoke_where_nobody_was_named() -> None:
    script = RecordWriter()
    script.opened(participants=())
    script.human("Please plan a trip to Rome.")
    assert measured(script) == Process(initiatives={"ann": 1})
    script.agent("ok")
    got = measured(script)
    assert (got.human_initiatives, got.agent_initiatives) == (1, 0)
    assert (got.initiative_entropy, got.halts) == (0.0, 0)


def test_before_anybody_has_spoken_the_balance_is_missing() -> None:
    script = RecordWriter()
    script.opened()
    got = measured(script)
    assert got.initiative_entropy is None
    assert (got.human_initiatives, got.confirmations_asked, got.interruptions) == (0, 0, 0)


@pytest.mark.parametrize("what", [{"body": None}, {"schema": 99}])
def test_an_utterance_that_cannot_be_read_leaves_nothing_to_say(what: dict[str, Any]) -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please plan a trip to Rome.")
    script.agent("Which dates suit you?")
    script.records[-1] = msgspec.structs.replace(script.records[-1], **what)
    assert measured(script) == Process(initiatives={})
