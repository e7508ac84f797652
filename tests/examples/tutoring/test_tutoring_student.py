"""The student: errs by their own rules, learns from what fits them, and from answers nothing."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.tutoring.generator import make_instance
from duolog.examples.tutoring.maths.rules import COMPONENTS, misconceptions_of
from duolog.examples.tutoring.maths.solving import explanations, solve
from duolog.examples.tutoring.student.learning import Lesson, practise, take_in
from duolog.examples.tutoring.student.student import (
    Student,
    attempt,
    expected_score,
    profile_of,
    student_of,
)
from duolog.examples.tutoring.tutoring_task import best_lesson, best_output_of, score_of

HELD = {one: misconceptions_of(one)[0].name for one in COMPONENTS}
PROBLEM = "1/2 + 1/3"


def student(known: float = 0.1, **changes: object) -> Student:
    made = Student(knows=dict.fromkeys(COMPONENTS, known), believes=HELD, guess=0.0, slip=0.0)
    return msgspec.structs.replace(made, **changes)


def learned(*lessons: Lesson, words: int = 20, of: Student | None = None) -> float:
    return take_in(of or student(), lessons, words).knows["add-fractions"]


def test_a_student_errs_by_the_misconception_that_they_hold() -> None:
    tried = attempt(student(0.0), PROBLEM, Random(1))
    assert str(tried.answer) == "2/5"
    assert tried.wrong == ("add-fractions",)
    assert attempt(student(1.0), PROBLEM, Random(1)).answer == solve(PROBLEM).answer


def test_slips_are_off_by_one() -> None:
    slipped = attempt(student(1.0, slip=1.0), PROBLEM, Random(1)).answer
    right = solve(PROBLEM).answer
    assert right is not None
    assert slipped in (right + 1, right - 1)


def test_the_expected_score_is_that_of_many_attempts() -> None:
    one = student(0.6, slip=0.1, guess=0.1)
    problems = ["-4(x - 3) = 2x - 12", "1/2 + 2/3 × 3/5", "3x + 7 = 13"]
    random = Random(5)
    for problem in problems:
        right = [attempt(one, problem, random).answer == solve(problem).answer for _ in range(3000)]
        assert expected_score(one, [problem]) == pytest.approx(sum(right) / 3000, abs=0.03)


def test_an_answer_teaches_nothing() -> None:
    assert learned(Lesson("answer", "add-fractions")) == 0.1


def test_taking_up_the_very_error_teaches_most_and_a_wrong_guess_least() -> None:
    wrong = Lesson("wrong", "add-fractions")
    own = learned(wrong, Lesson("explanation", "add-fractions", "tops-and-bottoms"))
    plain = learned(wrong, Lesson("explanation", "add-fractions"))
    strange = learned(wrong, Lesson("explanation", "add-fractions", "tops-over-common"))
    hint = learned(wrong, Lesson("hint", "add-fractions"))
    assert own > plain > max(strange, hint) > learned(wrong) > 0.1


def test_explanations_work_better_after_a_failure_and_alone_and_once_and_awake() -> None:
    told = Lesson("explanation", "add-fractions")
    erred = student(erred=("add-fractions",))
    after = learned(told, of=erred)
    assert after > learned(told)
    assert after > learned(told, Lesson("explanation", "collect"), of=erred)
    assert after > learned(told, words=400, of=erred)
    assert after > learned(told, of=practise(erred, 20.0))
    once = take_in(erred, [told], 20)
    again = take_in(once, [told], 20).knows["add-fractions"] - once.knows["add-fractions"]
    assert again < once.knows["add-fractions"] - 0.1


def test_a_lecture_on_everything_is_no_way_to_the_best_utility() -> None:
    instance = make_instance("3", 1)
    lessons = [Lesson("explanation", c, instance.student.believes[c]) for c in instance.focus]
    lectured = take_in(instance.student, lessons, 300)
    before, after, best = (
        score_of(instance, one, 1.0).value
        for one in (instance.student, lectured, best_lesson(instance))
    )
    assert after - before < 0.2 * (best - before)


def test_a_profile_tells_the_student_and_becomes_them_again() -> None:
    instance = make_instance("7", 1)
    profile = profile_of(instance.student, instance.focus)
    assert student_of(profile) == instance.student
    assert isinstance(profile, dict)
    assert len(profile["profile"]) == len(instance.focus)
    for broken in (None, {}, {"student": {"knows": "all"}}):
        with pytest.raises(InvalidInput, match="describes no student"):
            student_of(broken)


def test_instances_differ_and_each_can_be_taught() -> None:
    names = [str(number) for number in range(40)]
    made = [make_instance(name, 1) for name in names]
    assert len({one.request for one in made}) == len(made)
    assert made == [make_instance(name, 1) for name in names]
    assert make_instance("0", 2) != made[0]
    for one in made[:12]:
        homework = {item.problem for item in one.homework}
        assert len(one.homework) == 8
        assert not homework & set(one.test)
        assert all(solve(problem).answer is not None for problem in (*homework, *one.test))
        before = score_of(one, one.student, 0.0).value
        assert before + 0.3 < best_output_of(one).value < 0.95
        known = {one.student.knows[component] for component in one.focus}
        assert min(known) < 0.3


@pytest.mark.parametrize("name", ["", "x", "-1", "1.5"])
def test_what_is_no_instance_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="numbered from 0"):
        make_instance(name, 1)


def test_every_wrong_answer_of_a_student_has_an_explanation() -> None:
    random = Random(2)
    for number in range(5):
        instance = make_instance(str(number), 3)
        one = msgspec.structs.replace(instance.student, slip=0.0)
        for item in instance.homework:
            tried = attempt(one, item.problem, random)
            assert tried.answer in explanations(item.problem)
