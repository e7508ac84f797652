"""The verdict at the top of a report page claims only what the tests allow."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.report import (
    PagePart,
    aggregate,
    compare_agents,
    document_html,
    document_markdown,
    documents_page,
    report_document,
)
from duolog.scoring.report.comparing import marks_of
from duolog.scoring.trajectory.points import Point, Trajectory


def made(
    agent: str, number: int, utility: float | None, task: str = "trips", user: str = "u"
) -> Trajectory:
    return Trajectory(
        session=f"{task}-{number}-{agent}-{user}",
        group={"agent": agent, "task": task, "user": user},
        problem=f"{task}{number}",
        scorer="u@1" if utility is not None else None,
        points=(Point(round=1, value=utility, utility=utility, updated=True, rating=4),),
        evaluated=utility is not None,
    )


def played(level: dict[str, float], count: int = 12) -> list[Trajectory]:
    """Each agent on the same problems, of which some are harder."""
    return [
        made(
            agent, number, min(1.0, mean + 0.01 * (number % 3) + 0.002 * (number % 5) * len(agent))
        )
        for agent, mean in level.items()
        for number in range(count)
    ]


def test_the_best_agent_is_called_so_only_if_the_test_says_it() -> None:
    better = compare_agents(played({"one": 0.5, "three": 0.8}), bootstrap=200).document()
    assert better.verdict == "three is better than one."
    equal = [made(a, n, 0.5 + 0.1 * ((n + len(a)) % 2)) for a in ("one", "four") for n in range(9)]
    near = compare_agents(equal, bootstrap=200).document()
    assert near.verdict.startswith(
        "one leads, but 9 problems are too few to place it above four."
    ) or (near.verdict.startswith("four leads, but 9 problems are too few to place it above one."))
    mixed = compare_agents([*equal, *played({"low": 0.1}, 9)], bootstrap=200).document()
    assert "too few to place it above" in mixed.verdict
    assert "low" not in mixed.verdict
    assert "It is better than low." in document_html(mixed)


def test_a_mean_without_shared_problems_is_no_comparison() -> None:
    apart = [made("one", n, 0.5) for n in range(3)] + [made("two", n + 3, 0.7) for n in range(3)]
    assert compare_agents(apart).document().verdict == (
        "two has the highest mean, which is no comparison."
    )
    alone = compare_agents([made("one", n, 0.5) for n in range(3)]).document()
    assert alone.verdict == "one: overall utility 0.500."
    nothing = compare_agents([made("one", n, None) for n in range(3)]).document()
    assert nothing.verdict == "Nothing measured the utility of these sessions."


def test_five_agents_at_once_and_a_task_at_a_time() -> None:
    many = played({f"a{n}": 0.1 * n for n in range(7)}, 2) + [made("a1", 1, 0.9, "notes")]
    found = compare_agents(many)
    assert found.picked.task == "trips"
    assert found.picked.tasks == {"trips": 14, "notes": 1}
    assert found.picked.agents == ("a0", "a1", "a2", "a3", "a4")
    assert {group.group["agent"] for group in found.report.groups} == {*found.picked.agents}
    assert compare_agents(many, agents=("a6", "a2")).picked.agents == ("a6", "a2")
    assert compare_agents(many, task="notes").picked.others == {"a1": 1}
    with pytest.raises(InvalidInput, match="did you mean 'trips'"):
        compare_agents(many, task="trip")
    with pytest.raises(InvalidInput, match="no session of agent 'b'"):
        compare_agents(many, agents=("b",))


def test_pairs_share_the_user_and_the_rest_is_named() -> None:
    sessions = played({"one": 0.4, "two": 0.8}, 8)
    sessions += [made("one", n, 0.9, user="other") for n in range(3)]
    document = compare_agents(sessions, bootstrap=0).document()
    assert document.verdict == "two is better than one."
    assert "1 other combination of user and model" in document_html(document)


def test_plots_leave_out_who_has_fewer_than_five_sessions() -> None:
    sessions = [*played({"one": 0.4, "two": 0.8}, 8), *played({"few": 0.5}, 3)]
    document = compare_agents(sessions, bootstrap=0).document()
    [curve] = [figure for figure in document.figures if figure.name == "curve"]
    assert [key.name for key in curve.legend] == ["one", "two"]
    assert "Left out of the plots, with fewer than 5 sessions: few (3)." in document_html(document)
    small = compare_agents(played({"one": 0.4, "two": 0.8}, 3)).document()
    assert "curve" not in [figure.name for figure in small.figures]


def test_an_agent_keeps_its_colour() -> None:
    assert marks_of(("x", "y", "z"), {"y": 0, "z": 9}) == {"y": 0, "x": 1, "z": 2}
    document = compare_agents(played({"x": 0.4, "y": 0.8}, 8)).document(marks={"y": 3, "x": 2})
    for figure in document.figures:
        looks = {one.name: (one.colour, one.shape) for one in figure.series}
        assert looks == {"x": ("var(--a3)", 2), "y": ("var(--a4)", 3)}


def test_a_report_of_several_tasks_has_one_table_each_and_names_the_rest() -> None:
    sessions = [
        made(f"a{agent}", number, 0.5, f"t{task}")
        for task in range(7)
        for agent in range(10 if task == 0 else 2)
        for number in range(2)
    ]
    text = document_markdown(report_document(aggregate(sessions, bootstrap=0)))
    for task in range(5):
        assert f"t{task}" in text
    assert "Other tasks: t5 (4 sessions), t6 (4 sessions)." in text
    assert "Not shown, with fewer sessions: a8, a9." in text
    assert "--only-task NAME" in text
    assert "Process" not in text
    one = document_markdown(report_document(aggregate(sessions[:20], bootstrap=0)))
    assert "--only-task" not in one


def test_a_page_holds_several_tasks_and_shows_the_first() -> None:
    parts = [
        PagePart(name=name, document=compare_agents(played({"one": 0.4, "two": 0.8})).document())
        for name in ("trips", "<b>")
    ]
    page = documents_page(parts)
    assert page.count("<template data-part=") == 1
    assert '<template data-part="&lt;b&gt;">' in page
    assert "<option>trips</option><option>&lt;b&gt;</option>" in page
    assert "<select" not in documents_page(parts[:1])
