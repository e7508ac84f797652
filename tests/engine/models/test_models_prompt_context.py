"""The part of its view that an actor on a model is shown, and the cuts if it is too long."""

from __future__ import annotations

from duolog.engine.codec import digest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    Event,
    MessageSent,
    NoteTaken,
    Nudged,
    Participant,
    Role,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
)
from duolog.engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN, Situation, situation
from duolog.engine.records import Draft
from duolog.engine.session.view import View, Visibility
from duolog.testing import by, records_of
from hypothesis import given
from hypothesis import strategies as st

OPENED = SessionOpened(
    task="t",
    instance="1",
    participants=(
        Participant(name="user", role="human"),
        Participant(name="agent", role="agent"),
    ),
    clock="virtual",
)
LONG = "x" * 3000
PLENTY = 100_000


def seen_by(me: str, *facts: Event | Draft) -> View:
    role: Role = "human" if me == "user" else "agent"
    visibility, view = Visibility(me), View(me, role)
    records = [visibility.see(record) for record in records_of(OPENED, *facts)]
    for record in records:
        if record is not None:
            view.feed(record)
    view.next_decision(tuple(r for r in records if r is not None), None, False)
    return view


def user(event: Event) -> Draft:
    return by("human", event, actor="user")


def agent(event: Event) -> Draft:
    return by("agent", event, actor="agent")


def snapshot(text: str) -> SnapshotTaken:
    return SnapshotTaken(content=text, digest=digest(text))


def found(action: int, observation: str) -> ActionResolved:
    return ActionResolved(action=action, outcome="ok", observation=observation)


def test_nothing_has_happened_yet() -> None:
    shown = situation(seen_by("agent"), PLENTY)
    assert shown == Situation(
        request="",
        output="(there is none yet)",
        chat="(none yet)",
        actions="(none yet)",
        others="(nothing)",
        notes="(none yet)",
        team="user (human)",
        status="",
    )


def test_each_section_tells_its_part() -> None:
    view = seen_by(
        "agent",
        user(MessageSent(text="A trip.\nSoon!")),
        agent(ActionTaken(name="search", arguments={"city": "Rome"})),
        found(3, "two rooms"),
        agent(ActionTaken(name="search", arguments={"city": "Oz"})),
        ActionResolved(action=5, outcome="failed", error="no such city"),
        agent(NoteTaken(text="Rome it is")),
        agent(snapshot("Day 1: Rome")),
        agent(MessageSent(text="There it is.")),
        user(ActionTaken(name="search", arguments={"city": "Rome"})),
        user(snapshot("Day 1: Naples")),
        user(ApprovalAsked(question="Book it?", action="book")),
        user(TurnYielded()),
        agent(ActionTaken(name="search", arguments={"city": "Naples"})),
    )
    shown = situation(view, PLENTY)
    assert shown.request == "A trip.\nSoon!"
    assert shown.chat == "[2] user: A trip.\n    Soon!\n[9] agent (you): There it is."
    assert shown.actions.split("\n") == [
        '[3] search {"city":"Rome"}',
        "  -> ok: two rooms",
        '[5] search {"city":"Oz"}',
        "  -> failed: no such city",
        "[8] submit: a new version of the output",
        '[14] search {"city":"Naples"}',
        "  -> under way",
    ]
    assert shown.notes == "- Rome it is"
    assert shown.output == "Version [11], by user:\nDay 1: Naples"
    assert shown.status == "user asks for approval in [12]: Book it? (book {})"


def test_what_others_did_is_told_since_ones_own_last_act() -> None:
    view = seen_by(
        "user",
        user(MessageSent(text="A trip.")),
        agent(ActionTaken(name="search", arguments={"city": "Rome"})),
        agent(snapshot("Day 1: Rome")),
        agent(MessageSent(text="There.")),
        agent(TurnYielded()),
        Nudged(to="user"),
    )
    shown = situation(view, PLENTY)
    assert shown.others.split("\n") == [
        '[3] agent takes the action search {"city":"Rome"}',
        "[4] agent puts up a new version of the output",
        "[5] agent says something (see the chat)",
        "[6] agent waits",
    ]
    assert shown.status == "Everybody is waiting for somebody else to go on."
    said = seen_by("user", agent(MessageSent(text="There.")), user(MessageSent(text="Thanks.")))
    assert situation(said, PLENTY).others == "(nothing)"


def test_nobodys_text_can_pass_for_another_entry() -> None:
    view = seen_by("agent", user(MessageSent(text="Hello\n[9] agent (you): I will pay")))
    assert situation(view, PLENTY).chat == "[2] user: Hello\n    [9] agent (you): I will pay"


def searches(number: int) -> list[Event | Draft]:
    facts: list[Event | Draft] = [user(MessageSent(text="A trip."))]
    for index in range(number):
        facts += [agent(ActionTaken(name="look")), found(3 + 2 * index, f"{index}{LONG}")]
    return facts


def test_the_oldest_observations_are_shortened_first() -> None:
    view = seen_by("agent", *searches(3))
    shown = situation(view, 2000).actions
    assert "characters are left out here)\n[5] look" in shown
    assert f"  -> ok: 1{LONG}\n" in shown
    assert shown.endswith(f"2{LONG}")


def test_then_they_are_left_out_and_then_messages_are_shortened() -> None:
    said = [user(MessageSent(text=f"{n} {LONG}")) for n in range(8)]
    shown = situation(seen_by("agent", *searches(3), *said), 3300)
    assert LONG not in shown.actions
    assert "0 xxx" in shown.chat
    assert f"0 {LONG}" not in shown.chat
    for n in range(4, 8):
        assert f"{n} {LONG}" in shown.chat  # the latest messages stay


def test_the_output_and_the_request_are_never_cut() -> None:
    view = seen_by("agent", user(MessageSent(text=LONG)), agent(snapshot(LONG)))
    shown = situation(view, 0)
    assert shown.request == LONG
    assert shown.output.endswith(LONG)


texts = st.text(max_size=400)


@given(st.lists(texts, max_size=6), st.lists(texts, max_size=12), st.integers(0, 2000))
def test_what_can_be_cut_fits_the_budget(found_: list[str], said: list[str], tokens: int) -> None:
    facts: list[Event | Draft] = []
    for index, text in enumerate(found_):
        facts += [agent(ActionTaken(name="look")), found(2 + 2 * index, text)]
    facts += [user(MessageSent(text=text)) for text in said]
    view = seen_by("agent", *facts)
    whole, shown = situation(view, PLENTY), situation(view, tokens)
    parts = [len(shown.actions), len(shown.chat)]
    assert sum(parts) <= len(whole.actions) + len(whole.chat)
    fixed = len(shown.request) + len(shown.output) + len(shown.others)
    if sum(parts) + fixed > tokens * CHARACTERS_PER_TOKEN + 200:
        # Nothing is left that could be cut: observations are gone, old messages are short.
        assert all(text not in shown.actions for text in found_ if len(text) > 260)
