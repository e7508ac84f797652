"""Tutoring as a task: each actor's view, collaborations by its rules, and their utility."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest
from duolog.agents.habits import Habits
from duolog.cli import main
from duolog.engine.codec import digest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionTaken,
    MessageSent,
    Participant,
    ProfileChanged,
    ProgressRated,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.records import Record
from duolog.engine.session.decisions import Say
from duolog.engine.session.view import View
from duolog.engine.task import NOBODY, Cell, Setting
from duolog.examples.tutoring.actions import ACTIONS
from duolog.examples.tutoring.generator import make_instance
from duolog.examples.tutoring.language.answers import SAYING, read_said
from duolog.examples.tutoring.language.teaching import read_misconceptions
from duolog.examples.tutoring.maths.expressions import write_number
from duolog.examples.tutoring.maths.rules import MISCONCEPTIONS
from duolog.examples.tutoring.maths.solving import solve
from duolog.examples.tutoring.rule_agent import write_script
from duolog.examples.tutoring.rule_user import StudentUser
from duolog.examples.tutoring.sheet import number_of, read_sheet, written
from duolog.examples.tutoring.student.fold import StudentFold
from duolog.examples.tutoring.student.student import profile_of, student_of
from duolog.examples.tutoring.tutor.memory import Memory
from duolog.examples.tutoring.tutoring_task import tutoring_task
from duolog.scoring.turns import Turn, annotate
from duolog.tasks.kit import HUMAN_ALONE, KitTask
from duolog.testing import Played, by, played, records_of
from duolog.users.personas import find_persona
from toy_task import SPEC

TASK = tutoring_task()
SHEET = "1. -2 + 9 -> ?\n2. 4 - 7 -> -11 [look again]"
TOGETHER = ("one-stage", "two-stage", "careful", "adaptive")


KEPT: dict[Cell, Played] = {}
"""Sessions that several tests look at."""


async def play(agent: str, user: str = "proactive", instance: int = 0, seed: int = 1) -> Played:
    """A session, played once."""
    cell = Cell(agent=agent, user=user, instance=str(instance), seed=seed)
    if cell not in KEPT:
        KEPT[cell] = await played(TASK.session(cell, Setting()))
    return KEPT[cell]


def trace(one: Played) -> list[Record]:
    return one.streams["trace"]


def scores(one: Played) -> list[UtilityScored]:
    events = [record.event for stream in one.streams.values() for record in stream]
    return [event for event in events if isinstance(event, UtilityScored)]


def final(one: Played) -> float:
    value = scores(one)[-1].value
    assert value is not None
    return value


def learned(one: Played) -> float:
    """The expected score in the test at the end."""
    return scores(one)[-1].parts["test"] or 0.0


def said(records: Iterable[Record], actor: str) -> list[str]:
    events = [record.event for record in records if record.actor == actor]
    return [event.text for event in events if isinstance(event, MessageSent)]


@pytest.mark.parametrize("user", TASK.users)
@pytest.mark.parametrize("agent", TOGETHER)
async def test_every_tutor_teaches_every_student_something(agent: str, user: str) -> None:
    one = await play(agent, user)
    assert one.result.reason in ("finished", "abandoned", "limit")
    alone = final(await play("auto", NOBODY))
    assert alone < final(one) < 0.95
    assert all(set(score.parts) == {"test", "homework"} for score in scores(one))
    assert learned(one) > (scores(one)[0].parts["test"] or 0.0)


async def test_who_gives_all_answers_gets_the_homework_done_and_teaches_nothing() -> None:
    one = await play("auto", NOBODY)
    kinds = {record.kind for record in trace(one)}
    assert "MessageSent" not in kinds
    score = scores(one)[-1]
    assert score.parts["homework"] == 1.0
    assert learned(one) == learned(await play(HUMAN_ALONE))
    assert final(one) == pytest.approx(0.2 + 0.8 * learned(one))


async def test_a_student_alone_makes_their_own_errors_on_the_sheet() -> None:
    one = await play(HUMAN_ALONE)
    homework = scores(one)[-1].parts["homework"]
    assert homework is not None
    assert 0.0 < homework < 1.0
    assert {record.role for record in trace(one)} == {"human", "environment"}


@pytest.mark.parametrize("agent", TOGETHER)
async def test_the_scorer_knows_what_the_student_knows(agent: str) -> None:
    """The recorded state of the student equals the fold of all acts."""
    one, fold = await play(agent, instance=1), StudentFold()
    changes = 0
    for record in trace(one):
        event = record.event
        if isinstance(event, ProfileChanged):
            changes += 1
            student = student_of(event.profile)
            assert student == fold.now(student.heard)
            assert record.actor == "user"
            assert event.reason.startswith("learned about")
        fold.feed(record)
    assert changes > 3


async def test_tutors_know_of_the_student_only_what_is_said() -> None:
    one = await play("two-stage", instance=2)
    opened = TASK.session(
        Cell(agent="two-stage", user="proactive", instance="2", seed=1), Setting()
    ).opened
    profile = opened.private["user"]
    assert isinstance(profile, dict)
    assert set(opened.private) == {"user", "tutoring"}
    for text in (*said(trace(one), "user"), *said(trace(one), "agent")):
        assert not [line for line in profile["profile"] if line in text]
    test = make_instance("2", 1).test
    shown = " ".join(said(trace(one), "agent"))
    assert not [problem for problem in test if problem in shown]


async def test_a_wrong_answer_is_taken_up_by_the_misconception_behind_it() -> None:
    """In one of these sessions at least the tutor refutes just what the student believes."""
    hit = missed = 0
    for number in range(4):
        held = set(make_instance(str(number), 1).student.believes.values())
        one = await play("two-stage", instance=number)
        for record in trace(one):
            event = record.event
            if isinstance(event, ProfileChanged):
                told = student_of(event.profile).told
                named = {key.rpartition("/")[2] for key in told} - {""}
                hit += len(named & held)
                missed += len(named - held)
    assert hit > 10 * max(missed, 1)


async def test_what_somebody_begs_for_one_tutor_gives_and_the_other_does_not() -> None:
    given: dict[str, int] = {}
    for agent in ("one-stage", "two-stage"):
        texts = [
            text
            for number in range(6)
            for text in said(trace(await play(agent, "lazy", number)), "agent")
        ]
        given[agent] = sum("answer to number" in text or "comes out as" in text for text in texts)
    assert given["one-stage"] > given["two-stage"]


async def test_who_asks_first_starts_later_and_teaches_more() -> None:
    numbers = range(6)
    one = [await play("one-stage", instance=n) for n in numbers]
    two = [await play("two-stage", instance=n) for n in numbers]

    def drafted(played: Sequence[Played]) -> list[float]:
        return [next(r.time for r in trace(p) if r.kind == "SnapshotTaken") for p in played]

    assert all(a < b for a, b in zip(drafted(one), drafted(two), strict=True))
    assert math.fsum(map(learned, one)) < math.fsum(map(learned, two))


async def test_the_shared_sheet_is_always_one_that_can_be_read() -> None:
    one = await play("adaptive", instance=3)
    homework = [item.problem for item in make_instance("3", 1).homework]
    for record in trace(one):
        event = record.event
        if isinstance(event, SnapshotTaken):
            items = read_sheet(str(event.content))
            assert [item.problem for item in items] == homework
            for item in items:
                if item.mark == "right":
                    right = solve(item.problem).answer
                    assert number_of(item.answer) == right
                    assert written(item.problem, right).endswith(write_number(right))


async def test_ratings_go_by_the_homework_and_by_insight() -> None:
    one = await play("one-stage", "feedback")
    ratings = [r.event for r in trace(one) if isinstance(r.event, ProgressRated)]
    assert len(ratings) >= 5
    assert {rating.rating for rating in ratings} >= {3, 4}


async def test_one_seed_gives_one_session_and_another_seed_another() -> None:
    first = await play("adaptive", "lazy")
    cell = Cell(agent="adaptive", user="lazy", instance="0", seed=1)
    assert first.streams == (await played(TASK.session(cell, Setting()))).streams
    assert (await play("adaptive", "lazy", seed=2)).streams != first.streams


async def test_look_ups_take_time_and_nobody_does_more_than_needed() -> None:
    one = await play("two-stage")
    taken = [r.event for r in trace(one) if isinstance(r.event, ActionTaken)]
    made = [(a.name, str(dict(a.arguments))) for a in taken]
    assert len(made) == len(set(made))


def test_what_is_no_instance_is_refused() -> None:
    with pytest.raises(InvalidInput, match="numbered from 0"):
        TASK.session(Cell(agent="auto", user=NOBODY, instance="first", seed=0), Setting())


@pytest.mark.usefixtures("litellm_at_work")  # keeps what loads LiteLLM in one process
def test_a_tutor_on_a_model_is_judged_by_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["run", "tutoring", "--models", "m", "--sessions", "1", "--agents", "two-stage"]
    assert main([*asked, "--users", "lazy", "--log", f"{tmp_path}/a.db", "--dry-run"]) == 0
    assert "calls" in capsys.readouterr().out


def test_a_task_on_rules_only_refuses_models() -> None:
    task = KitTask(msgspec.structs.replace(SPEC, rules_only="nothing reads what it says"))
    cell = Cell(agent="two-stage", user="lazy", model="m", instance="0", seed=0)
    with pytest.raises(InvalidInput, match="rules only: nothing reads what it says"):
        task.session(cell, Setting())


# --- what teaches ---------------------------------------------------------------------------------


PROBLEM = {"add-signed": "-2 + 9", "subtract-negative": "-2 - (-6)", "order": "3 × 4 + 2 × 5"}


def taught(*acts: ActionTaken | MessageSent) -> Mapping[str, float]:
    """Gains of a student from a tutor's acts, by skill."""
    one = make_instance("0", 1)
    opened = SessionOpened(
        task="tutoring",
        instance="0",
        participants=(Participant(name="user", role="human"), Participant(name="t", role="agent")),
        clock="virtual",
        private={"user": profile_of(one.student, one.focus)},
    )
    fold = StudentFold()
    for record in records_of(opened, *(by("agent", act, actor="t") for act in acts)):
        fold.feed(record)
    student = fold.now()
    assert student is not None
    return {c: student.knows[c] - one.student.knows[c] for c in student.knows}


def teach(skill: str, **more: str) -> ActionTaken:
    return ActionTaken(name="Teach", arguments={"skill": skill, "example": PROBLEM[skill], **more})


def test_a_lesson_teaches_its_skill_and_no_other() -> None:
    for skill in PROBLEM:
        gained = taught(teach(skill))
        assert [one for one, gain in gained.items() if gain] == [skill]


KEYWORDS = (
    "Common denominator, add; tops times tops; reciprocal; divide both sides; order of operations; "
    "same signs give plus; every term in the brackets; difference of the sizes; changes its sign."
)


def test_words_alone_teach_nothing() -> None:
    """Explanations of school algebra, and a line with the key words of all rules."""
    for text in (
        "Two minus signs next to each other turn into a plus, so 7 - (-2) is 7 + 2.",
        KEYWORDS,
    ):
        assert not any(taught(MessageSent(text=text)).values())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"skill": "algebra", "example": "1 + 1"}, "Teach"),
        ({"skill": "order", "example": "2 + 2"}, "'2 + 2' is not an example of order"),
        ({"skill": "order", "example": "nonsense"}, "'nonsense' is not an example of order"),
        (
            {"skill": "order", "example": "3 × 4 + 2 × 5", "refutes": "adds-sizes"},
            "an explanation of order takes up one of left-to-right, sums-first",
        ),
    ],
)
def test_a_lesson_without_an_example_of_its_skill_is_refused_and_teaches_nothing(
    arguments: dict[str, str], why: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(why)):
        ACTIONS.perform(make_instance("0", 1), "Teach", arguments)
    assert not any(taught(ActionTaken(name="Teach", arguments=arguments)).values())


def test_teaching_all_at_once_is_worth_less_than_one_thing_at_a_time() -> None:
    alone = {skill: taught(teach(skill))[skill] for skill in PROBLEM}
    together = taught(*(teach(skill) for skill in PROBLEM))
    assert all(together[skill] < alone[skill] / 2 for skill in PROBLEM)


async def test_tutors_on_rules_teach_by_acts_beside_what_they_say() -> None:
    one = await play("two-stage")
    lessons = [
        r for r in trace(one) if isinstance(r.event, ActionTaken) and r.event.name == "Teach"
    ]
    assert len(lessons) >= 3
    following = {r.version: r for r in trace(one)}
    for record in lessons:
        after = (following[v] for v in range(record.version + 1, record.version + 4))
        assert any(r.kind == "MessageSent" and r.actor == record.actor for r in after)


@pytest.mark.parametrize("agent", ["one-stage", "careful"])
async def test_what_a_tutor_has_checked_is_marked_when_it_speaks(agent: str) -> None:
    """A look-up or news between the check and the sheet made it forget the marks."""
    unmarked, spoken = 0, 0
    for instance in range(3):
        one = await play(agent, "lazy", instance)
        checked: set[str] = set()
        sheet = ""
        for record in trace(one):
            event = record.event
            if isinstance(event, ActionTaken) and event.name == "Check":
                checked.add(str(event.arguments["problem"]))
            elif isinstance(event, SnapshotTaken):
                sheet = str(event.content)
            elif isinstance(event, MessageSent) and record.actor == "agent":
                spoken += 1
                items = [item for item in read_sheet(sheet) if item.problem in checked]
                unmarked += sum(bool(item.answer and not item.mark) for item in items)
    assert spoken > 9
    assert unmarked == 0


# --- what a student contradicts -------------------------------------------------------------------


async def test_a_student_who_is_sure_of_a_rule_holds_to_it_once_and_the_tutor_takes_it_up() -> None:
    held = 0
    for instance in range(4):
        one = await play("one-stage", "feedback+corrects=1+queries=0+repeats=0", instance)
        disputed: list[int] = []
        for record in trace(one):
            if not isinstance(record.event, MessageSent):
                continue
            text = record.event.text
            if record.actor == "agent":
                if disputed and disputed[-1]:
                    assert "is not right for" in text or "is not correct for" in text
                    assert f"number {disputed[-1]}" in text
                disputed.append(0)
            elif number := read_said(text, ()).disputes:
                assert number not in disputed
                assert read_misconceptions(text)
                labels = annotate(Turn(text=text, before="That is not right. Can you try again?"))
                assert labels is not None
                assert labels & {"correction", "deny"}
                disputed.append(number)
        held += sum(map(bool, disputed))
        quiet = await play("one-stage", "feedback+corrects=0", instance)
        assert not any(read_said(text, ()).disputes for text in said(trace(quiet), "user"))
    assert held >= 4


def test_a_tutor_owns_up_to_a_wrong_guess_at_what_the_student_does() -> None:
    own = SAYING.variants("not mine", does=MISCONCEPTIONS["first-sign-wins"].does)
    for text in own:
        memory = Memory()
        opened = SessionOpened(task="tutoring", instance="0", participants=(), clock="virtual")
        seen = View("agent", "agent", seed=1)
        facts = (
            by("human", MessageSent(text="1. -2 + 9\n2. 4 - 7"), actor="user"),
            by("agent", SnapshotTaken(content=SHEET, digest=digest(SHEET)), actor="agent"),
            by("agent", MessageSent(text="My guess is that you add the two sizes."), actor="agent"),
            by("human", MessageSent(text=f"{text} I get -3."), actor="user"),
        )
        for record in records_of(opened, *facts):
            seen.feed(record)
        memory.read(seen)
        assert memory.corrected == "first-sign-wins"
        script = write_script(memory, "reactive", Random(1), Habits())
        assert script.acts or "wrong" in script.text or "mistake" in script.text


def test_students_do_not_know_that_their_own_rules_are_wrong() -> None:
    knowing = ("instead", "although", "forget", "without changing", "disappear", "as they were")
    for one in MISCONCEPTIONS.values():
        assert not [word for word in knowing if word in one.own], one.own
        assert read_misconceptions(f"No, that is not what I do: I {one.own}.") == (one.name,)


@pytest.mark.parametrize(("asked", "topic"), [("-7 - (-5)", "with fractions"), ("1/2 + 1/3", "")])
async def test_whoever_corrects_the_tutor_about_another_topic_says_which(
    asked: str, topic: str
) -> None:
    one = make_instance("0", 1)
    student = msgspec.structs.replace(
        one.student,
        knows={**one.student.knows, "add-fractions": 0.0},
        believes={**one.student.believes, "add-fractions": "tops-over-common"},
    )
    opened = SessionOpened(
        task="tutoring",
        instance="0",
        participants=(Participant(name="user", role="human"),),
        clock="virtual",
        request=one.request,
        private={"user": profile_of(student, one.focus)},
    )
    guess = f"My guess is that you add the tops and add the bottoms. What do you get for {asked}?"
    facts = (
        by("human", MessageSent(text=one.request), actor="user"),
        by("agent", MessageSent(text=guess), actor="agent"),
    )
    seen = View("user", "human", seed=1)
    for record in records_of(opened, *facts):
        seen.feed(record)
    sure = find_persona("feedback+corrects=1+refuses=0+mishears=0+ambiguous=0")
    [verb] = (await StudentUser().compose(seen, sure, "answer")).verbs
    assert isinstance(verb, Say)
    assert read_said(verb.text, (asked,)).corrects
    assert "keep the tops" in verb.text
    assert ("with fractions" in verb.text) == bool(topic)
    assert asked in verb.text


async def test_nothing_is_called_wrong_again_the_first_time() -> None:
    for instance in range(4):
        one = await play("one-stage", "feedback", instance)
        written: Counter[int] = Counter()
        for record in trace(one):
            event = record.event
            if isinstance(event, MessageSent) and record.actor == "user":
                written.update(number for number, _ in read_said(event.text, ()).items)
            elif isinstance(event, ProgressRated) and event.explanation:
                again = re.search(r"still|again", event.explanation.lower())
                number = re.search(r"number (\d+)", event.explanation)
                if again and number and "do again" not in event.explanation:
                    assert written[int(number[1])] > 1, event.explanation
