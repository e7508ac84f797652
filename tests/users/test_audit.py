"""What simulated users give away or make up is flagged, and honest messages are not."""

from __future__ import annotations

import pytest
from duolog.engine.codec import digest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    Event,
    MessageSent,
    Participant,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
)
from duolog.engine.records import Draft
from duolog.testing import by, check_scorer, records_of
from duolog.testing.records import run_scorer
from duolog.users.audit import Fault, SimulatorAudit, Utterance, find_inventions, find_leaks

PROFILE = [
    "Requires that all rooms are quiet and have a window to the garden",
    "Travels with three friends and a budget of $1,200",
    "Prefers quiet private rooms",
    "Wants to eat Chinese, Indian, Italian, Mexican and French dishes",
]


def said(text: str, *known: str, before: tuple[str, ...] = ()) -> Utterance:
    return Utterance(
        text=text,
        profile={"profile": PROFILE},
        request="A trip to Ohio in March.",
        known=known,
        before=before,
    )


@pytest.mark.parametrize(
    "text",
    [
        "Well, all rooms are quiet and have a window, right?",
        "all ROOMS are quiet, and have a window to the garden",
        "Prefers quiet private rooms.",
    ],
)
def test_a_copy_of_the_profile_is_a_leak(text: str) -> None:
    [fault] = find_leaks(said(text))
    assert fault.kind == "leak"
    assert "from the profile" in fault.detail


@pytest.mark.parametrize(
    "text",
    [
        "Please find rooms where it is quiet.",
        "We'd love a window to the garden!",
        "We want to eat Chinese, Indian, Italian, Mexican and French food.",  # names stay names
        "private rooms, please",
        "",
    ],
)
def test_own_words_are_no_leak(text: str) -> None:
    assert list(find_leaks(said(text))) == []


def test_repeating_what_others_said_is_no_leak() -> None:
    text = "Yes, all rooms are quiet and have a window."
    assert list(find_leaks(said(text, "So all rooms are quiet and have a window?"))) == []


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("Our budget is $1,500.", "nothing says 1,500"),
        ("There are 5 of us.", "nothing says 5"),
        ("We would love to see Cleveland.", "nothing mentions Cleveland"),
    ],
)
def test_what_nothing_says_is_an_invention(text: str, detail: str) -> None:
    assert list(find_inventions(said(text))) == [Fault("invention", detail)]


@pytest.mark.parametrize(
    "text",
    [
        "Our budget is $1200.00.",
        "We are 3 friends and me, so I think it's fine.",
        "We travel in March, on a Monday, and I love French food. OK? Great.",
        "Cleveland? Never heard of it.",
        "Not Akron, please.",
    ],
)
def test_what_something_says_is_none(text: str) -> None:
    assert list(find_inventions(said(text, "What about Akron?"))) == []


def test_what_it_said_before_is_flagged_once() -> None:
    assert list(find_inventions(said("As I said, 5.", before=("We are 5.",)))) == []


# --- the scorer ----------------------------------------------------------------------------------

OPENED = SessionOpened(
    task="t",
    instance="1",
    participants=(
        Participant(name="sim", role="human", persona="lazy"),
        Participant(name="ann", role="human"),
        Participant(name="bot", role="agent"),
    ),
    clock="virtual",
    private={"sim": {"profile": PROFILE}, "ann": {"profile": ["Lives at 12 Elm Street in Dayton"]}},
)


def sim(text: str) -> Draft:
    return by("human", MessageSent(text=text), actor="sim")


def bot(event: Event) -> Draft:
    return by("agent", event, actor="bot")


async def flags(*facts: Event | Draft) -> list[SimulatorFlagged]:
    measured = await run_scorer(SimulatorAudit(), records_of(OPENED, *facts))
    return [event for event, _ in measured if isinstance(event, SimulatorFlagged)]


async def test_each_fault_of_a_simulated_user_is_recorded() -> None:
    found = await flags(
        sim("A trip for 77 people."),  # the request is the task's
        sim("It is 9 of us, in Toledo."),
        by("human", MessageSent(text="We are 8, in Dayton."), actor="ann"),
        bot(MessageSent(text="It is 9 of you and 4 of them?")),
        sim("Yes, 4 of them in Dayton."),
    )
    assert [(flag.of, flag.fault, flag.detail) for flag in found] == [
        (3, "invention", "nothing says 9"),
        (3, "invention", "nothing mentions Toledo"),
    ]
    assert found[0].scorer is not None
    assert found[0].scorer.name == "simulator-audit"


async def test_outputs_and_its_own_findings_are_known_to_it() -> None:
    plan = SnapshotTaken(content="Day 1: 14 Main Street", digest=digest("Day 1: 14 Main Street"))
    search = by("human", ActionTaken(name="look"), actor="sim")
    found = await flags(
        sim("A trip."),
        bot(plan),
        search,
        ActionResolved(action=4, outcome="ok", observation={"price": 99}),
        bot(ActionTaken(name="look")),
        ActionResolved(action=6, outcome="ok", observation={"price": 55}),
        sim("The 14 costs 99."),
        sim("And not 55."),
    )
    assert [flag.detail for flag in found] == ["nothing says 55"]


async def test_messages_to_others_are_not_known_to_it() -> None:
    secret = bot(MessageSent(text="The code is 4711.", to=("ann",)))
    [flag] = await flags(sim("A trip."), secret, sim("It is 4711."))
    assert flag.detail == "nothing says 4711"


async def test_it_keeps_the_contract_of_scorers() -> None:
    await check_scorer(SimulatorAudit(), records_of(OPENED, sim("A trip."), sim("For 9 of us.")))
