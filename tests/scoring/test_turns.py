"""What turns of people do: by rules, held to labelled turns if those are there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from duolog.engine.errors import PluginFailed
from duolog.scoring import turns
from duolog.scoring.columns.kept import kind_of
from duolog.scoring.columns.rows import SessionFold
from duolog.scoring.process import ProcessFold
from duolog.scoring.report.summary import _PROCESS as PROCESS
from duolog.scoring.report.summary import make_report, report_document
from duolog.scoring.scorers.progress import UNREADABLE, labels_judge, rule_judge
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Point, Trajectory
from duolog.scoring.turns import LABELS, WEAK, Label, Turn, annotate, is_english
from duolog.testing.records import RecordWriter, run_scorer
from hypothesis import given
from hypothesis import strategies as st

BEFORE: Final = "I have updated the plan."


def labels(text: str, before: str = BEFORE, said: str = "") -> frozenset[Label]:
    found = annotate(Turn(text=text, before=before, said=said))
    assert found is not None
    return found


# --- examples ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("complaint", "That isn't what I asked for"),
        ("complaint", "This is useless."),
        ("correction", "No, I meant the second one."),
        ("correction", "The total is wrong."),
        ("praise", "Looks good to me"),
        ("thanks", "Thank you! " * 10_000),
        ("vague", "Whatever you think is best."),
        ("clarify", "What do you mean by that?"),
        ("clarify", "Sorry?"),
        ("clarify", "I don't quite follow."),
        ("clarify", "Could you explain your second step?"),
        ("clarify", "I'm a bit lost here."),
        ("clarify", "Which one do you mean?"),
        ("informs", "My order has not arrived."),
        ("informs", "Please don't go over $300 in total."),
        ("asks", "Can you book the hotel?"),
        ("asks", "Let's consider driving."),
        ("halt", "Please stop editing the plan"),
        ("halt", "Hold on."),
        ("repeat", "As I said, two people."),
    ],
)
def test_a_turn_has_the_label(label: Label, text: str) -> None:
    assert label in labels(text)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("complaint", "My order has not arrived."),
        ("complaint", "Two people, please"),
        ("praise", "It would be good to know the price."),
        ("halt", "Please don't go over $300 in total."),
        ("halt", "We stop in Rome for a day"),
        ("halt", "No, I don't think that's a good idea."),
        ("clarify", "What does a ticket cost?"),
        ("clarify", "Sorry, I meant Rome."),
        ("clarify", "You decide."),
        ("asks", "Right, okay."),
        ("informs", "Thank you! " * 10_000),
    ],
)
def test_a_turn_does_not_have_the_label(label: Label, text: str) -> None:
    assert label not in labels(text)


def test_answers_are_told_by_what_the_agent_asked() -> None:
    question = "Shall I book it?"
    assert "confirm" in labels("Yes, go ahead.", question)
    assert "deny" in labels("No, let me think", question)
    assert not labels("Yes.", "I have booked it.") & {"confirm", "deny"}


def test_a_turn_repeats_the_one_before_it() -> None:
    said = "Please find a quiet hotel near the station."
    assert "repeat" in labels("A quiet hotel near the station!", said=said)
    assert "repeat" not in labels("A train at noon, too.", said=said)


@given(text=st.text(), before=st.text(), said=st.text())
def test_any_text_has_known_labels(text: str, before: str, said: str) -> None:
    found = annotate(Turn(text=text, before=before, said=said))
    assert found is None or found <= set(LABELS)


# --- languages -----------------------------------------------------------------------------------

COMPLAINTS: Final = {
    "English": ("That is still wrong.", "No, that's not what I asked for.", "This does not work."),
    "German": ("Das ist immer noch falsch.", "Nein, das wollte ich nicht.", "Das geht so nicht."),
    "French": ("C'est toujours faux.", "Non, ce n'est pas ça.", "Ça ne marche pas."),
    "Spanish": ("Esto sigue mal.", "No, eso no es lo que pedí.", "Esto no funciona."),
    "Chinese": ("这还是不对。", "不，这不是我要的。", "这个不行。"),
    "Japanese": ("まだ違います。", "いいえ、それは頼んでいません。", "これは動きません。"),
    "Russian": ("Это всё ещё неверно.", "Нет, я не об этом.", "Это не работает."),
}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, value in vars(turns).items()
        if isinstance(value, turns._Pattern) and value._holds != [""]
    ],
)
@given(data=st.data())
def test_every_match_holds_what_is_looked_for_first(name: str, data: st.DataObject) -> None:
    pattern = getattr(turns, name)
    text = data.draw(st.from_regex(pattern._text))
    assert pattern.occurs(text) == (pattern.search(text) is not None)


@pytest.mark.parametrize("language", COMPLAINTS)
async def test_complaints_are_bad_ratings_in_english_and_missing_ones_elsewhere(
    language: str,
) -> None:
    script = RecordWriter()
    script.opened()
    script.human("Rome")
    for text in COMPLAINTS[language]:
        script.agent("I have done it.")
        script.human(text)
    rated = [one.event for one in await run_scorer(rule_judge(), script.records)]
    found = [(getattr(one, "rating", 0), getattr(one, "missing", "")) for one in rated]
    if language == "English":
        assert all(rating is not None and rating <= 2 for rating, _ in found)
    else:
        assert found == [(None, UNREADABLE)] * 3


@pytest.mark.parametrize("text", ["LA", "42", "", "fix lint", "Zürich", "x = 3", "Fine."])
def test_a_text_without_a_language_can_be_read(text: str) -> None:
    assert is_english(text)


async def test_a_judge_may_go_by_another_annotator() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Rom")
    script.agent("Bitte sehr.")
    script.human("Das ist falsch.")
    judge = labels_judge(lambda turn: frozenset[Label]({"complaint"}), "german", "1")
    (rated,) = await run_scorer(judge, script.records)
    assert getattr(rated.event, "rating", None) == 2


def test_process_measures_of_words_that_cannot_be_read_are_missing() -> None:
    fold = ProcessFold()
    script = RecordWriter()
    script.opened()
    script.human("Bitte plane eine Reise nach Rom.")
    script.agent("Where do you start?")
    for record in script.records:
        fold.feed(record)
    got = fold.measures
    assert (got.human_initiatives, got.halts, got.clarifications) == (None, None, None)
    assert (got.agent_initiatives, got.interruptions) == (1, 0)


# --- labelled turns --------------------------------------------------------------------------------


def counted(turns: Iterable[dict[str, Any]]) -> dict[Label, Counter[str]]:
    """By label: how many are right, read, and there; a turn on which the annotators differ is left out."""
    counts: dict[Label, Counter[str]] = {label: Counter() for label in LABELS}
    for one in turns:
        found = annotate(Turn(text=one["text"], before=one["before"])) or frozenset()
        for label in LABELS:
            given = [label in one["labels"][by] for by in ("A", "B")]
            if any(given) and not all(given):
                continue
            counts[label].update(
                right=all(given) and label in found, read=label in found, there=all(given)
            )
    return counts


@pytest.mark.parametrize("source", ["real", "simulated"])
def test_labelled_turns_are_read_as_reported(test_data: Callable[[str], Path], source: str) -> None:
    lines = test_data("turns/turns.jsonl").read_text(encoding="utf-8").splitlines()
    turns = [
        one for one in map(json.loads, lines) if (one["source"] == "real") == (source == "real")
    ]
    for label, count in counted(turns).items():
        if label in ("halt", "complaint", "repeat"):
            assert count["read"] == count["right"], label
        elif count["there"] >= 5:
            assert count["right"] >= 0.8 * count["read"], label
            assert count["right"] >= 0.6 * count["there"], label


# --- another annotator ----------------------------------------------------------------------------


def test_process_measures_and_deferrals_go_by_the_annotator_of_the_options() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Bitte plane eine Reise nach Rom.")
    script.agent("Wohin genau?")
    script.human("Egal.")
    fold = SessionFold("s", Options(annotator=lambda turn: frozenset[Label]({"vague", "halt"})))
    for record in script.records:
        fold.feed(record)
    folded = fold.folded()
    assert folded.session.process is not None
    assert folded.session.process.halts == 2
    assert folded.rounds[-1].effort["deferrals"] == 2


def test_rows_of_another_annotator_are_not_kept() -> None:
    assert kind_of(Options())
    assert kind_of(Options(annotator=lambda turn: None)) == ""


def test_an_annotator_that_raises_says_so() -> None:
    def fails(turn: Turn) -> frozenset[Label] | None:
        raise KeyError(turn.text)

    script = RecordWriter()
    script.opened()
    fold = SessionFold("s", Options(annotator=fails))
    fold.feed(script.records[0])
    with pytest.raises(PluginFailed, match="the annotator"):
        fold.feed(script.human("Hi"))


@pytest.mark.parametrize(
    ("judges", "weak", "shown", "said"),
    [
        (("rule-judge@2",), False, False, "The drop is not shown"),
        (("rule-judge@2",), True, True, "The drop goes by the rule judge alone"),
        (("human", "rule-judge@2"), False, True, "Some ratings are those of the rule judge"),
        (("human",), False, True, None),
    ],
)
def test_a_drop_by_the_rule_judge_alone_is_not_shown_unless_it_is_asked_for(
    judges: tuple[str, ...], weak: bool, shown: bool, said: str | None
) -> None:
    points = tuple(
        Point(round=k, utility=k / 4, value=k / 4, rating=2, updated=True) for k in (1, 2)
    )
    rated = Trajectory(session="s", group={"agent": "a"}, points=points, judges=judges)
    document = report_document(make_report([rated], bootstrap=0), whole=False, weak=weak)
    [table, *_] = document.sections[0].tables
    assert any(heading.title.startswith("Drop") for heading in table.headings) == shown
    notes = [note.text for note in document.notes if "rule judge" in note.text]
    assert [note[: len(said or "")] for note in notes] == ([said] if said else [])
    robust = any("under 6 readings" in note.text for note in document.sections[0].notes)
    assert robust == shown


def test_measures_that_rest_on_weak_labels_are_not_in_the_table() -> None:
    assert WEAK == {"confirm", "deny", "vague"}
    shown = {name for columns in PROCESS.values() for name in columns.values()}
    assert not shown & {"confirmations_answered", "clarifications"}
