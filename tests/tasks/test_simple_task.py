"""Tasks made of a utility, instances, and agents and users: their records, and their refusals."""

from __future__ import annotations

import math
from collections.abc import Callable

import duolog
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ScorerFailed, SessionOpened, UtilityScored
from duolog.engine.session.actors import Part
from duolog.engine.session.decisions import Decision, Finish, Submit
from duolog.engine.task import Cell, Setting
from duolog.scoring.live import score_records
from duolog.scoring.metrics import aggregate
from duolog.scoring.scorers.utility import Missing
from duolog.scoring.trajectory.points import Trajectory
from duolog.tasks.simple import SimpleTask, Utility
from duolog.testing import Played, played

RHYME = duolog.Instance(name="fog", request="What rhymes?", private=["log"], data="frog")


class Poet:
    """Writes a word.

    And nothing else.
    """

    async def decide(self, view: duolog.View) -> Decision:
        return Decision(() if view.snapshot else (Submit("frog"),))


async def reader(context: duolog.ActorContext) -> None:
    """Takes what there is."""
    await context.news()
    assert context.look()
    assert context.view.private == ["log"]
    await context.rate(5)
    await context.finish("fine")


def task(utility: Utility = lambda output: 1.0, **options: object) -> SimpleTask:
    parts: dict[str, object] = {"agents": {"poet": Poet}, "users": {"reader": reader}}
    return SimpleTask("rhyme", "rhyme", instances=[RHYME], utility=utility, **{**parts, **options})  # type: ignore[arg-type]


def cell(**values: str) -> Cell:
    return Cell(
        **{"agent": "poet", "user": "reader", "instance": "fog", "seed": 1, **values}  # type: ignore[arg-type]
    )


async def scored(utility: Utility) -> tuple[Played, UtilityScored | ScorerFailed]:
    found = await played(task(utility).session(cell(), Setting()))
    [record] = found.streams["rhyme@1"]
    assert isinstance(record.event, UtilityScored | ScorerFailed)
    return found, record.event


async def test_a_utility_is_given_the_text_and_the_instance_if_it_takes_that() -> None:
    for utility in (
        lambda output: float(output == "frog"),
        lambda output, instance: float((output, instance) == ("frog", RHYME)),
    ):
        found, event = await scored(utility)
        assert (found.result.reason, found.result.utility) == ("finished", 1.0)
        assert isinstance(event, UtilityScored)
        assert event.value == 1.0


async def test_a_utility_may_be_async_and_say_more() -> None:
    async def asked(output: str) -> duolog.Score:
        return duolog.Score(0.5, {"length": 0.5})

    _, event = await scored(asked)
    assert isinstance(event, UtilityScored)
    assert event.parts == {"length": 0.5}
    _, event = await scored(lambda output: Missing("nobody knows"))
    assert isinstance(event, UtilityScored)
    assert (event.value, event.missing) == (None, "nobody knows")


@pytest.mark.parametrize(
    ("worth", "error"),
    [
        (1.5, "a utility lies in [0, 1], and 1.5 does not"),
        (math.nan, "a utility lies in [0, 1], and nan does not"),
        ("good", "the utility of task 'rhyme' gave 'good'"),
        (None, "the utility of task 'rhyme' gave None"),
    ],
)
async def test_what_is_no_utility_is_missing_and_said(worth: object, error: str) -> None:
    found, event = await scored(lambda output: worth)  # type: ignore[arg-type]
    assert isinstance(event, ScorerFailed)
    assert error in event.error
    assert found.result.utility is None
    assert error in (found.result.scorer_failed or "")


async def test_what_a_utility_raises_names_its_line() -> None:
    prices: dict[str, float] = {}

    def broken(output: str) -> float:
        return prices["jam"]

    _, event = await scored(broken)
    line = broken.__code__.co_firstlineno + 1
    assert isinstance(event, ScorerFailed)
    assert event.error == f"'jam' (test_simple_task.py, line {line}, in broken)"


async def test_only_the_user_and_the_scorer_see_what_is_private() -> None:
    seen: list[object] = []

    class Nosy(Poet):
        async def decide(self, view: duolog.View) -> Decision:
            seen.append((view.private, view.request))
            return await super().decide(view)

    found = await played(task(agents={"poet": Nosy}).session(cell(), Setting()))
    assert set(seen) == {(None, "What rhymes?")}
    opened = found.trace[0].event
    assert isinstance(opened, SessionOpened)
    assert opened.private["user"] == ["log"]
    assert (opened.config["utility"], opened.config["judge"]) == ("rhyme", "human")


def test_it_describes_its_kinds_and_has_defaults() -> None:
    rules = task()
    assert rules.agents == {"poet": "Writes a word"}
    assert rules.users == {"reader": "Takes what there is"}
    assert (rules.default_agents, rules.default_users) == (("poet",), ("reader",))
    assert rules.instances(30, seed=0) == ["fog"]
    both = task(output="A word.")
    assert both.default_agents == ("poet",)
    assert {"poet", "auto", "two-stage"} <= set(both.agents)
    assert both.automated("auto")
    assert not both.automated("poet")
    assert task(alone=["poet"]).automated("poet")
    prompts = SimpleTask(
        "rhyme", "rhyme", instances=[RHYME], utility=lambda output: 1.0, output="A word."
    )
    assert prompts.default_agents == ("auto", "one-stage", "two-stage")
    assert prompts.default_users == ("proactive",)


async def folded(**options: object) -> Trajectory:
    """The trajectory of a session of the task."""
    found = await played(task(**options).session(cell(), Setting()))  # type: ignore[arg-type]
    records = [record for stream in found.streams.values() for record in stream]
    return score_records(sorted(records, key=lambda record: record.position))


@pytest.mark.parametrize(("options", "posed"), [({}, True), ({"output": None}, False)])
async def test_a_task_may_pose_no_output_and_then_has_no_first_update(
    options: dict[str, None], *, posed: bool
) -> None:
    trajectory = await folded(**options)
    assert trajectory.output is posed
    [group] = aggregate([trajectory], bootstrap=0).groups
    assert (group.first.value is not None) is posed
    assert group.overall.value == 1.0


async def test_an_agent_that_ends_a_session_without_a_word_counts_with_nothing() -> None:
    class Quitter(Poet):
        async def decide(self, view: duolog.View) -> Decision:
            return Decision((Finish(),))

    both = [await folded(), await folded(agents={"poet": Quitter}, users={"reader": Poet})]
    [group] = aggregate(both, bootstrap=0).groups
    assert (group.overall.value, group.overall.sessions) == (0.5, 2)


async def test_an_agent_alone_has_no_user_and_the_request_is_recorded() -> None:
    class Alone(Poet):
        async def decide(self, view: duolog.View) -> Decision:
            return Decision((Submit(view.request), Finish()))

    single = task(agents={"poet": Alone}, alone=["poet"])
    found = await played(single.session(cell(), Setting()))
    opened = found.trace[0].event
    assert isinstance(opened, SessionOpened)
    assert [one.name for one in opened.participants] == ["agent"]
    assert (opened.request, opened.config["baseline"]) == ("What rhymes?", True)


def test_another_instance_of_the_same_name_is_another_session() -> None:
    other = SimpleTask(
        "rhyme",
        "rhyme",
        instances=[duolog.Instance(name="fog", request="And now?")],
        utility=lambda output: 1.0,
        agents={"poet": Poet},
        users={"reader": reader},
    )
    ids = {one.session(cell(), Setting()).id for one in (task(), task(), other)}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: task(agents={}), "has no agents; pass rules as agents=, or output= for models"),
        (lambda: task(users={}), "has no users; pass rules as users="),
        (lambda: task(agents={"poet": Poet()}), "poet is an object: give its class"),
        (lambda: task(agents={"poet": object}), "poet is not a policy: it has no decide"),
        (lambda: task(agents={"poet": 3}), "poet is not a class"),
        (lambda: task(alone=["auto"]), "lacks an agent 'auto' that can work alone"),
        (
            lambda: task(lambda: 1.0),  # type: ignore[arg-type]
            "is not a function (output) or (output, instance)",
        ),
        (
            lambda: task(3),  # type: ignore[arg-type]
            "is not a function (output) or (output, instance)",
        ),
        (
            lambda: SimpleTask("user", "", instances=[RHYME], utility=len),
            "needs a name, other than",
        ),
        (lambda: task().session(cell(instance="x"), Setting()), "choose from fog"),
        (lambda: task().session(cell(agent="x"), Setting()), "choose from poet"),
        (lambda: task().session(cell(user="x"), Setting()), "choose from reader"),
        (lambda: task().session(cell(model="gpt"), Setting()), "leave --models out"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert why in str(refused.value)


def test_a_part_is_a_class_a_function_that_makes_one_or_an_actor() -> None:
    def maker() -> Poet:
        return Poet()

    parts: dict[str, Part] = {"class": Poet, "maker": maker, "actor": reader}
    assert list(task(agents=parts).agents) == ["class", "maker", "actor"]
