"""The mathematics of tutoring: problems are read, solved exactly, and solved wrongly on purpose."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.tutoring.maths.expressions import (
    Equation,
    find_problems,
    parse_number,
    parse_problem,
)
from duolog.examples.tutoring.maths.making import make_plain, make_telling, make_transfer
from duolog.examples.tutoring.maths.rules import (
    COMPONENTS,
    MISCONCEPTIONS,
    Component,
    misconceptions_of,
)
from duolog.examples.tutoring.maths.solving import explanations, keeping, solve, solve_by


@pytest.mark.parametrize(
    ("problem", "answer", "components"),
    [
        ("-3 + 8", "5", "add-signed"),
        ("-3 - (-5)", "2", "subtract-negative"),
        ("−3 · (−5)", "15", "multiply-signs"),
        ("2 + 3 × 4", "14", "order"),
        ("1/2 + 1/3", "5/6", "add-fractions"),
        ("2/3 × 4/5", "8/15", "multiply-fractions"),
        ("2/3 ÷ 4/5", "5/6", "divide-fractions"),
        ("-2(x - 3) = 4", "1", "distribute move-constant divide-coefficient"),
        ("5x + 2 = 2x + 11", "3", "collect move-constant divide-coefficient"),
        ("x + 1/3 = 5/6", "1/2", "move-constant add-fractions"),
        ("(2 + 3) × 4", "20", ""),
    ],
)
def test_problems_are_solved_exactly(problem: str, answer: str, components: str) -> None:
    solved = solve(problem)
    assert solved.answer == Fraction(answer)
    assert solved.components == tuple(components.split())


@pytest.mark.parametrize(
    ("name", "problem", "wrong"),
    [
        ("adds-sizes", "-3 + 8", "-11"),
        ("first-sign-wins", "-3 + 8", "-5"),
        ("drops-double-minus", "-3 - (-5)", "-8"),
        ("all-turns-plus", "-3 - (-5)", "8"),
        ("stays-minus", "-3 × (-5)", "-15"),
        ("takes-away-instead", "-3 × (-5)", "-8"),
        ("left-to-right", "2 × 3 + 4 × 5", "50"),
        ("sums-first", "2 × 3 + 4 × 5", "70"),
        ("tops-and-bottoms", "1/2 + 1/3", "2/5"),
        ("tops-over-common", "1/2 + 1/3", "2/6"),
        ("keeps-denominator", "2/5 × 3/5", "6/5"),
        ("multiplies-crosswise", "2/3 × 4/5", "10/12"),
        ("divides-straight", "2/3 ÷ 4/5", "8/15"),
        ("turns-first", "2/3 ÷ 4/5", "12/10"),
        ("first-term-only", "3(x + 2) = 11", "3"),
        ("loses-the-minus", "-2(x - 3) = 4", "-5"),
        ("adds-the-xs", "6x = 2x + 8", "1"),
        ("forgets-an-x", "6x = 2x + 12", "2"),
        ("keeps-the-sign", "x + 4 = 9", "13"),
        ("takes-away-backwards", "x + 4 = 9", "-5"),
        ("subtracts-coefficient", "3x = 12", "9"),
        ("divides-backwards", "3x = 12", "1/4"),
    ],
)
def test_each_misconception_errs_in_its_own_way(name: str, problem: str, wrong: str) -> None:
    rules = {MISCONCEPTIONS[name].component: name}
    assert solve_by(parse_problem(problem), keeping(rules)).answer == Fraction(wrong)
    assert solve(problem).answer != Fraction(wrong)
    assert (name,) in explanations(problem)[Fraction(wrong)]


def test_every_misconception_is_tried_above() -> None:
    marks = test_each_misconception_errs_in_its_own_way.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in marks[0].args[1]} == set(MISCONCEPTIONS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("3 +", "ends too early"),
        ("3 + (4", "closing parenthesis"),
        ("3 $ 4", "cannot be read"),
        ("1/0 + 2", "divides by zero"),
        ("3x + 4", "is not an equation"),
        ("9" * 90, "at most 80"),
        ("((((((((1))))))))", "parentheses inside"),
        ("12345678 + 1", "go up to"),
        ("1 = 1 = 1", "continues with"),
    ],
)
def test_what_is_no_problem_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        parse_problem(text)


@pytest.mark.parametrize("problem", ["0x = 4", "1 ÷ 0", "x × x = 4", "2x = 2x + 1"])
def test_what_has_no_single_solution_has_no_answer(problem: str) -> None:
    assert solve(problem).answer is None


def test_problems_are_found_in_sentences() -> None:
    text = "What is 7 - (-2)? Number 3, 2(x + 3) = 8 - or -3 + 8 = 5. In the box: x = 4, 12, and 1/2 + 1/3."
    assert find_problems(text) == ("7 - (-2)", "2(x + 3) = 8", "-3 + 8", "1/2 + 1/3")
    assert find_problems("An exercise for 5 - no, 6 people") == ()


@pytest.mark.parametrize(("text", "number"), [("x = -3/4", "-3/4"), ("− 8", "-8"), ("6/4", "3/2")])
def test_numbers_are_read(text: str, number: str) -> None:
    assert parse_number(text) == Fraction(number)


@pytest.mark.parametrize("component", COMPONENTS)
def test_problems_made_for_a_component_show_whether_it_is_known(component: Component) -> None:
    names = [one.name for one in misconceptions_of(component)]
    for seed in range(5):
        plain = make_plain(component, Random(seed))
        right = solve(plain).answer
        assert component in solve(plain).components
        lucky = explanations(plain)[right]
        assert not [name for name in names if (name,) in lucky]
        transfer = make_transfer(component, Random(seed))
        assert component in solve(transfer).components
        assert len(solve(transfer).components) > 1
    telling = make_telling(component, Random(1))
    answers = [
        answer
        for answer, sets in explanations(telling).items()
        for s in sets
        if s in {(n,) for n in names}
    ]
    assert len(set(answers)) == len(answers) == len(names)


def test_an_equation_is_told_from_an_expression() -> None:
    assert isinstance(parse_problem("4x = 12"), Equation)
