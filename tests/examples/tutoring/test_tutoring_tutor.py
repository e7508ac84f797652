"""The tutor: looks answers up, infers the misconceptions behind them, and decides what to say."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.tutoring.actions import ACTIONS
from duolog.examples.tutoring.generator import make_instance
from duolog.examples.tutoring.maths.rules import COMPONENTS
from duolog.examples.tutoring.maths.solving import solve
from duolog.examples.tutoring.student.learning import Lesson
from duolog.examples.tutoring.tutor.belief import Belief

INSTANCE = make_instance("0", 1)


def test_a_check_says_which_misconceptions_lead_to_an_answer() -> None:
    found = ACTIONS.perform(INSTANCE, "Check", {"problem": "1/2 + 1/3", "answer": "2/5"})
    assert found == {
        "right": False,
        "answer": "5/6",
        "components": ["add-fractions"],
        "explained_by": [[{"misconception": "tops-and-bottoms", "component": "add-fractions"}]],
    }
    right = ACTIONS.perform(INSTANCE, "Check", {"problem": "4x = 12", "answer": "3"})
    assert right == {"right": True, "answer": "x = 3", "components": ["divide-coefficient"]}
    strange = ACTIONS.perform(INSTANCE, "Check", {"problem": "4x = 12", "answer": "77"})
    assert isinstance(strange, dict)
    assert strange["explained_by"] == []


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("kind", ["plain", "telling", "transfer"])
def test_problems_are_made_that_are_neither_homework_nor_in_the_test(
    component: str, kind: str
) -> None:
    made = [
        ACTIONS.perform(
            INSTANCE, "MakeProblem", {"component": component, "kind": kind, "number": n}
        )
        for n in (0, 0, 1, 2)
    ]
    problems = [str(one["problem"]) for one in made if isinstance(one, dict)]
    assert problems[0] == problems[1]
    assert len(set(problems)) > 1
    set_before = {*INSTANCE.test, *(item.problem for item in INSTANCE.homework)}
    assert not set_before & set(problems)
    assert all(component in solve(problem).components for problem in problems)


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("Solve", {"problem": "2x = 2x + 1"}, "does not have a single solution"),
        ("Solve", {"problem": "seven"}, "cannot be read"),
        ("Solve", {}, r"Solve\(problem\) was called wrongly"),
        ("Check", {"problem": "1 + 1", "answer": "two"}, "is not an integer or a fraction"),
        ("MakeProblem", {"component": "poetry"}, "called wrongly"),
        ("MakeProblem", {"component": "order", "kind": "hard"}, "called wrongly"),
        ("Cheat", {}, "unknown action 'Cheat'"),
    ],
)
def test_wrong_requests_are_refused_with_a_reason(
    name: str, arguments: dict[str, str], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        ACTIONS.perform(INSTANCE, name, arguments)


def test_the_student_has_no_solver() -> None:
    with pytest.raises(InvalidInput, match="for the agent to do"):
        ACTIONS.perform(INSTANCE, "Solve", {"problem": "1 + 1"}, "human")


def test_answers_and_lessons_move_the_belief_as_knowledge_tracing_says() -> None:
    belief = Belief()
    belief.right(["order"])
    assert belief.known["order"] == pytest.approx(0.5 * 0.9 / (0.5 * 0.9 + 0.5 * 0.1))
    found = belief.wrong(["add-fractions"], [("tops-and-bottoms",)])
    assert (found.component, found.misconception, found.sure) == (
        "add-fractions",
        "tops-and-bottoms",
        True,
    )
    assert belief.known["add-fractions"] < 0.05
    low = belief.known["add-fractions"]
    belief.taught(Lesson("explanation", "add-fractions"))
    assert belief.known["add-fractions"] == pytest.approx(low + (1 - low) * 0.2)


def test_an_answer_with_two_explanations_is_not_sure_until_something_tells_them_apart() -> None:
    belief = Belief()
    both = [("left-to-right",), ("sums-first",)]
    assert not belief.wrong(["order"], both).sure
    assert belief.wrong(["order"], [("sums-first",)]).misconception == "sums-first"
    assert belief.diagnosis("order").sure


def test_of_several_rules_the_one_that_is_known_less_is_blamed() -> None:
    belief = Belief()
    for _ in range(3):
        belief.right(["order"])
    found = belief.wrong(["order", "add-signed"], [("left-to-right",), ("adds-sizes",)])
    assert found.component == "add-signed"


def test_what_the_student_says_of_their_way_settles_a_diagnosis() -> None:
    belief = Belief()
    belief.wrong(["order"], [("left-to-right",), ("sums-first",)])
    belief.told("sums-first")
    assert belief.diagnosis("order").misconception == "sums-first"
    assert belief.diagnosis("order").sure
