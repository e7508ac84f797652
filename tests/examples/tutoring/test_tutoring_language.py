"""Tutor and student understand each other by text alone, and fail to if a text is unclear."""

from __future__ import annotations

from fractions import Fraction

import pytest
from duolog.examples.tutoring.generator import _REQUESTS
from duolog.examples.tutoring.language.answers import SAYING, Said, read_said
from duolog.examples.tutoring.language.teaching import (
    HINTS,
    RULES,
    TEACHING,
    Answer,
    Taught,
    read_misconceptions,
    read_teaching,
)
from duolog.examples.tutoring.maths.rules import COMPONENTS, MISCONCEPTIONS, Component
from duolog.examples.tutoring.sheet import (
    LOOK_AGAIN,
    RIGHT,
    Item,
    answered,
    newly_answered,
    read_answers,
    read_sheet,
    share_right,
    write_sheet,
)
from duolog.examples.tutoring.student.student import _EXAMPLES

ASKED = ("1/2 + 1/3",)


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_problem_of_a_hint_or_example_is_not_set_as_a_task(component: Component) -> None:
    problem = _EXAMPLES[component]
    for text in (
        *TEACHING.variants("example", problem=problem, answer="4", rule=RULES[component]),
        *TEACHING.variants("hint", problem=problem, hint=HINTS[component]),
    ):
        assert read_teaching(text).asked == ()


@pytest.mark.parametrize("name", MISCONCEPTIONS)
def test_every_misconception_is_read_from_what_a_student_says_of_it(name: str) -> None:
    for text in SAYING.variants("working", does=MISCONCEPTIONS[name].does):
        assert read_misconceptions(text) == (name,)


@pytest.mark.parametrize("problem", _EXAMPLES.values())
def test_feedback_and_tasks_are_read(problem: str) -> None:
    for text in TEACHING.variants("right", problem=problem, answer="7"):
        assert read_teaching(text).judged == ((problem, True),)
    for text in TEACHING.variants("wrong", problem=problem, said="7"):
        assert read_teaching(text).judged == ((problem, False),)
    for text in TEACHING.variants("ask", problem=problem):
        assert read_teaching(text).asked == (problem,)
    for text in TEACHING.variants("back", problem=problem):
        assert read_teaching(text) == Taught()
    for text in TEACHING.variants("ask two", first=problem, second="2 + 2"):
        assert read_teaching(text).asked == (problem, "2 + 2")
    for key in ("item", "again"):
        for text in TEACHING.variants(key, problem=problem, number=3):
            assert read_teaching(text).items == (3,)


def test_an_answer_that_is_given_away_is_read() -> None:
    for text in TEACHING.variants("answer", number=4, answer="x = -3/4"):
        read = read_teaching(text)
        assert read.answers == (Answer(4, Fraction(-3, 4)),)


def test_a_teacher_who_writes_otherwise_is_understood_too() -> None:
    said = (
        "Not quite right! I think you added the tops and the bottoms. You need a common denominator before "
        "you can add. Now try 2/5 + 1/3."
    )
    read = read_teaching(said)
    assert read.judged == (("", False),)
    assert read.asked == ("2/5 + 1/3",)
    assert read_teaching("How was your day?") == Taught()


@pytest.mark.parametrize("answer", ["5/6", "-8", "12", "x = -3/4"])
def test_answers_are_read_in_all_their_wordings(answer: str) -> None:
    number = Fraction(answer.removeprefix("x = "))
    for text in SAYING.variants("result", answer=answer):
        assert read_said(text, ASKED).results == (("", number),)
    for text in SAYING.variants("result of", answer=answer, problem="1/2 + 1/3"):
        assert read_said(text, ASKED).results == (("1/2 + 1/3", number),)
    one = SAYING.variants("one", answer=answer, number=3)[0]
    for text in SAYING.variants("wrote", answers=f"{one} and 7 for number 4"):
        assert read_said(text, ()).items == ((3, number), (4, Fraction(7)))


def test_what_is_no_clear_answer_is_not_taken_for_one() -> None:
    for key, fields in (("fuzzy", {"size": 8}), ("fuzzy fraction", {"near": 2})):
        for text in SAYING.variants(key, **fields):
            assert read_said(text, ASKED) == Said(unclear=True)
    for text in SAYING.variants("no idea"):
        said = read_said(text, ASKED)
        assert said.lost or said.begs == -1
        assert not said.results
    for text in SAYING.variants("stuck", number=4):
        assert read_said(text, ASKED) == Said(stuck=4)
    for text in SAYING.variants("begs", number=4):
        assert read_said(text, ASKED) == Said(begs=4)
    assert read_said("3 or 4?", ASKED).unclear


def test_a_request_that_names_a_problem_is_read() -> None:
    for text in _REQUESTS.variants("stuck", number=4):
        assert read_said(text, ()).stuck == 4
    for text in _REQUESTS.variants("done"):
        assert read_said(text, ()) == Said()


def test_a_sheet_is_written_and_read_and_a_new_answer_has_no_mark() -> None:
    items = (
        Item(1, "7 - (-2)", "5", LOOK_AGAIN),
        Item(2, "4x = 12"),
        Item(3, "1/2 + 1/3", "5/6", RIGHT),
    )
    text = write_sheet(items)
    assert text.splitlines()[:2] == ["1. 7 - (-2) -> 5 [look again]", "2. 4x = 12 -> ?"]
    assert read_sheet(text) == items
    after = answered(items, {1: "5", 2: "x = 3"})
    assert newly_answered(items, after) == (Item(1, "7 - (-2)", "5"), Item(2, "4x = 12", "x = 3"))
    assert read_sheet("Dear all\n1) 2 + 2 → 4\n2. nonsense -> 3") == (Item(1, "2 + 2", "4"),)


def test_the_homework_stays_what_it_is_whatever_somebody_makes_of_the_sheet() -> None:
    homework = (Item(1, "7 - (-2)"), Item(2, "4x = 12"), Item(3, "1/2 + 1/3"))
    sheet = "Done!\n1) 7−(−2) → 9 [right]\n2. 5x = 12 -> 3\n9. 1 + 1 -> 2"
    assert read_answers(sheet, homework) == (Item(1, "7 - (-2)", "9", RIGHT), *homework[1:])
    assert read_answers("", homework) == homework


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9" * 5000,
        f"number {'9' * 5000} is {'9' * 5000}",
        f"The answer to number 1 is {'9' * 9}. It is 3/0 for number 2. Number 3 comes out as 1/0.",
        f"{'9' * 5000}. 1 + 1 -> 2\n1. {'(' * 3000}",
        "1 + " * 3000,
        "(" * 4000 + "x" * 4000 + " " * 4000 + "=",
        "minus -/- 3/-4 for number - x = = 2 ?",
    ],
)
def test_whatever_is_said_is_read_without_harm(text: str) -> None:
    read_teaching(text)
    assert read_said(text, ASKED).results == ()
    assert read_sheet(text) == ()
    read_misconceptions(text)


def test_only_right_answers_to_what_was_set_count() -> None:
    homework = ["7 - (-2)", "4x = 12", "1/2 + 1/3", "2 + 3 × 4"]
    sheet = (
        "1. 7 - (-2) -> 5\n2. 4x = 12 -> 3\n3. 1/2 + 1/3 -> 10/12\n4. 2 + 3 × 4 -> ?\n5. 1 + 1 -> 2"
    )
    assert share_right(read_sheet(sheet), homework) == 0.5
