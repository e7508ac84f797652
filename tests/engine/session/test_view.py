"""Views: the part of a session that an actor can see; it cannot reach the rest."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType

import msgspec
import pytest
from duolog.engine.codec import digest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Nudged,
    Participant,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    Unknown,
)
from duolog.engine.records import Draft, Record
from duolog.engine.session.actors import playing
from duolog.engine.session.context import ActorContext
from duolog.engine.session.decisions import Decision, Finish, Say
from duolog.engine.session.environment import ActionSpec
from duolog.engine.session.view import View, Visibility
from duolog.testing import (
    Improviser,
    Script,
    Workshop,
    a_session,
    agent,
    by,
    human,
    played,
    records_of,
)
from hypothesis import given
from hypothesis import strategies as st

OPENED = SessionOpened(
    task="t",
    instance="1",
    participants=(Participant(name="ann", role="human"), Participant(name="bot", role="agent")),
    clock="virtual",
    private={"ann": {"likes": "secret-of-ann"}, "bot": ["secret-of-bot"], "judge": "secret-key"},
)


def opening() -> Draft:
    return by("environment", OPENED, actor="engine")


def seen_by(name: str, *facts: Event | Draft) -> list[Record]:
    visibility = Visibility(name)
    return [seen for r in records_of(*facts) if (seen := visibility.see(r)) is not None]


def view_of(name: str, *facts: Event | Draft) -> View:
    view = View(name, "human" if name == "ann" else "agent")
    for record in seen_by(name, *facts):
        view.feed(record)
    return view


def ann(event: Event) -> Draft:
    return by("human", event, actor="ann")


def bot(event: Event) -> Draft:
    return by("agent", event, actor="bot")


def engine(event: Event) -> Draft:
    return by("environment", event, actor="engine")


PUBLIC = [
    MessageSent(text="x"),
    ActionTaken(name="x"),
    SnapshotTaken(content="x", digest="d"),
    ApprovalAsked(question="x"),
    ApprovalGiven(asked=1, approved=True),
    TurnYielded(),
    FeedbackGiven(thumbs="up"),
    SessionClosed(reason="finished", by="ann"),
]
OWN = [
    NoteTaken(text="x"),
    ModelCalled(model="m", purpose="p", request="r"),
    ProgressRated(round=1, rating=3),
    MessageSent(text="x", to=("carl",)),
    ApprovalAsked(question="x", to=("carl",)),
]


def test_a_view_counts_the_acts_of_its_actor_alone() -> None:
    first, second = ann(MessageSent(text="x")), ann(ActionTaken(name="x"))
    others = bot(MessageSent(text="y")), ann(NoteTaken(text="no act"))
    view = view_of("ann", opening(), first, second, *others)
    assert (view.acts, view.last_act) == (2, 3)
    assert (view_of("carl", opening(), first).acts, view_of("carl").last_act) == (0, 0)


@pytest.mark.parametrize("event", PUBLIC, ids=lambda e: type(e).__name__)
def test_what_is_public_everybody_sees(event: Event) -> None:
    assert [r.event for r in seen_by("bot", ann(event))] == [event]
    assert [r.event for r in seen_by("ann", ann(event))] == [event]


@pytest.mark.parametrize("event", OWN, ids=lambda e: type(e).__name__)
def test_what_is_ones_own_nobody_else_sees(event: Event) -> None:
    assert seen_by("bot", ann(event)) == []
    assert [r.event for r in seen_by("ann", ann(event))] == [event]


def test_messages_to_some_are_seen_by_them() -> None:
    message = MessageSent(text="psst", to=("bot", "carl"))
    assert [seen_by(name, ann(message)) != [] for name in ("ann", "bot", "carl", "dan")] == [
        True,
        True,
        True,
        False,
    ]


def test_the_outcome_of_an_action_is_for_whom_it_concerns() -> None:
    facts = (
        opening(),
        ann(ActionTaken(name="search")),
        bot(ActionTaken(name="search")),
        engine(ActionResolved(action=2, outcome="ok", observation="for ann")),
        engine(ActionResolved(action=3, outcome="ok", observation="for bot")),
    )
    for name, own in (("ann", "for ann"), ("bot", "for bot"), ("carl", None)):
        outcomes = [r.event for r in seen_by(name, *facts) if r.kind == "ActionResolved"]
        assert [e.observation for e in outcomes if isinstance(e, ActionResolved)] == (
            [own] if own else []
        )


def test_a_nudge_is_for_whom_it_is_meant() -> None:
    assert seen_by("ann", engine(Nudged(to="bot"))) == []
    assert len(seen_by("bot", engine(Nudged(to="bot")))) == 1


def test_the_answer_to_an_approval_is_for_those_who_know_the_question() -> None:
    facts = (
        bot(ApprovalAsked(question="May I?", to=("ann",))),
        ann(ApprovalGiven(asked=1, approved=True, comment="between us")),
    )
    assert len(seen_by("bot", *facts)) == 2
    assert len(seen_by("ann", *facts)) == 2
    assert seen_by("carl", *facts) == []


@pytest.mark.parametrize("kind", ["SessionOpened", "MessageSent", "ApprovalAsked", "SomethingNew"])
def test_what_a_newer_version_wrote_is_not_shown_to_others(kind: str) -> None:
    """Nobody can tell for whom it is."""
    newer = Unknown(kind, 99, b'{"kind":"x","secret":1}')
    assert seen_by("bot", by("human", newer, actor="ann")) == []


def test_forgotten_messages_are_not_shown() -> None:
    [record] = records_of(ann(MessageSent(text="x")))
    assert Visibility("bot").see(msgspec.structs.replace(record, body=None, _event=None)) is None


def test_of_the_opening_everybody_sees_but_others_private_parts() -> None:
    for name, own in (("ann", {"likes": "secret-of-ann"}), ("bot", ["secret-of-bot"])):
        view = view_of(name, opening())
        assert view.private == own
        assert view.opened is not None
        assert set(view.opened.private) == {name}
        assert (view.opened.task, view.participants) == ("t", OPENED.participants)
        body = view.records[0].body or b""
        assert [secret in body for secret in (b"of-ann", b"of-bot", b"key")] == [
            name == "ann",
            name == "bot",
            False,
        ]
    assert view_of("carl", opening()).private is None


def test_measurements_are_nobodys_business() -> None:
    [record] = records_of(by("scorer", ProgressRated(round=1, rating=1), actor="judge"))
    record = msgspec.structs.replace(record, stream="judge@1")
    assert Visibility("ann").see(record) is None
    assert Visibility("judge").see(record) is None


# --- what the view makes of it -----------------------------------------------------------------------


def test_a_view_folds_what_it_sees() -> None:
    view = view_of(
        "bot",
        opening(),
        ann(MessageSent(text="Plan a trip.")),
        bot(ActionTaken(name="search", arguments={"of": "hotels"})),
        bot(ApprovalAsked(question="Book?")),
        engine(ActionResolved(action=3, outcome="ok", observation=[1])),
        bot(SnapshotTaken(content="Day 1", digest="a")),
        ann(SnapshotTaken(content={"day": 1}, digest="b", media_type="application/json", base=6)),
        ann(ApprovalGiven(asked=4, approved=False, comment="too dear")),
        ann(ApprovalAsked(question="May I edit?")),
        bot(NoteTaken(text="budget matters")),
        bot(ActionTaken(name="search")),
    )
    assert view.request == "Plan a trip."
    assert [(m.version, m.actor, m.text) for m in view.messages] == [(2, "ann", "Plan a trip.")]
    assert view.snapshot is not None
    assert (view.snapshot.version, view.snapshot.actor, view.snapshot.content) == (
        7,
        "ann",
        {"day": 1},
    )
    assert [record.version for record in view.snapshots] == [6, 7]
    assert view.own_snapshot == "a"
    assert view.snapshot_text == '{\n "day": 1\n}'
    assert view.actions[3].resolved == ActionResolved(action=3, outcome="ok", observation=[1])
    assert [a.version for a in view.in_flight] == [11]
    assert [a.version for a in view.open_approvals] == [9]
    given_ = view.approvals[4].given
    assert given_ is not None
    assert given_.comment == "too dear"
    assert view.notes == ["budget matters"]
    assert len(view.records) == 11


def test_the_request_is_the_task_text_where_there_is_one() -> None:
    stated = msgspec.structs.replace(OPENED, request="As stated.")
    message = ann(MessageSent(text="As said."))
    assert view_of("bot", engine(stated), message).request == "As stated."
    assert view_of("bot", opening(), bot(MessageSent(text="Hi")), message).request == "As said."
    assert view_of("bot", opening()).request == ""


def test_the_request_is_the_message_as_the_actor_has_it_now() -> None:
    view = view_of("bot", opening())
    assert view.request == ""
    [said] = records_of(ann(MessageSent(text="As said.")), after=1)
    view.feed(said)
    assert view.request == "As said."
    [misread] = records_of(ann(MessageSent(text="As read.")), after=1)
    view.swap(misread)
    assert view.request == "As read."


def test_reading_is_of_what_is_new() -> None:
    view = view_of("ann", opening(), bot(MessageSent(text="one two three")))
    assert view.unread_words == 3
    view.mark_read()
    assert view.unread_words == 0
    plan = "a b\nc d e\n"
    for record in records_of(
        bot(SnapshotTaken(content=plan, digest=digest(plan))),
        ann(MessageSent(text="my own words are not read")),
        after=2,
    ):
        view.feed(record)
    assert view.unread_words == 5
    view.mark_read()
    changed = "a b\nc d f\nnew line\n"
    for record in records_of(bot(SnapshotTaken(content=changed, digest="x")), after=4):
        view.feed(record)
    assert view.unread_words == 5, "the two lines that changed, not the whole again"
    for record in records_of(ann(SnapshotTaken(content="mine", digest="y")), after=5):
        view.feed(record)
    assert view.unread_words == 0, "what one wrote oneself"


# --- what cannot be reached ----------------------------------------------------------------------------


def reachable(start: object) -> Iterator[object]:
    """All objects that can be reached from one, by attributes, items and references."""
    seen: set[int] = set()
    stack = [start]
    while stack:
        thing = stack.pop()
        if id(thing) in seen or isinstance(
            thing, type | ModuleType | FunctionType | MethodType | property
        ):
            continue
        seen.add(id(thing))
        yield thing
        stack.extend(gc.get_referents(thing))
        if isinstance(thing, msgspec.Struct):  # unknown to the garbage collector, some of them
            stack.extend(getattr(thing, field) for field in thing.__struct_fields__)


async def test_the_private_part_of_a_view_is_as_it_stands() -> None:
    seen: list[object] = []

    async def changing(context: ActorContext) -> None:
        context.look()
        seen.append(context.view.private)
        await context.change_profile({"wants": "the sea"}, "saw the map")
        context.look()
        seen.append(context.view.private)
        await context.finish()

    await played(a_session(human(changing), private={"user": {"wants": "hills"}}))
    assert seen == [{"wants": "hills"}, {"wants": "the sea"}]


async def test_no_view_reaches_what_is_anothers() -> None:
    """Private parts, notes, outcomes and whispers of the others, the evaluator's data, the
    environment: a policy gets its view, and whatever it digs up from there is its own.
    """
    secrets = {name: f"secret-of-{name}" for name in ("user", "left", "right")}
    everything = [*secrets.values(), "secret-of-the-judge"]
    dug: dict[str, set[str]] = {name: set() for name in secrets}
    workshop = Workshop()
    objects: list[object] = []

    class Digging:
        def __init__(self, name: str) -> None:
            self._improviser = Improviser(10, ("look", "search"))
            self._name = name

        async def decide(self, view: View) -> Decision:
            decision = await self._improviser.decide(view)
            if len(view.records) > 25:
                decision = Decision((Finish(),))
            for thing in reachable(view):
                objects.append(type(thing))
                text = thing if isinstance(thing, str) else ""
                if isinstance(thing, bytes):
                    text = thing.decode("utf-8", "replace")
                dug[self._name].update(secret for secret in everything if secret in text)
                assert thing is not workshop
                assert not isinstance(thing, Workshop)
            return decision

    note = Script(*[Script().note(f"{secrets['user']} in a note").pause(1).hear(within=1)] * 3)
    whisper = Script().say(secrets["user"], to=["user"])
    change = Script().change_profile(f"{secrets['user']} in a change")
    await played(
        a_session(
            human(Script(note, whisper, change, note)),
            agent(playing(Digging("left")), "left"),
            agent(playing(Digging("right")), "right"),
            environment=workshop,
            request="Hello.",
            private={**secrets, "judge": "secret-of-the-judge"},
        )
    )
    assert dug["left"] == {secrets["left"]}
    assert dug["right"] == {secrets["right"]}
    assert len(objects) > 1000


async def test_the_actions_shown_are_no_way_into_the_environment() -> None:
    class Catalogue(dict[str, ActionSpec]):
        """A mapping that knows its environment."""

    workshop = Workshop()
    catalogue = Catalogue(workshop.actions)
    catalogue.owner = workshop  # type: ignore[attr-defined]

    class Leaky:
        actions = catalogue
        perform = workshop.perform
        recall = workshop.recall

    shown: list[object] = []

    class Watching:
        async def decide(self, view: View) -> Decision:
            shown.extend(reachable(view))
            assert set(view.actions_available) == set(catalogue)
            return Decision((Finish(),))

    await played(a_session(agent(playing(Watching())), environment=Leaky()))
    assert not any(thing is workshop for thing in shown)


EVENTS = st.sampled_from([*PUBLIC, *OWN])


@given(st.lists(st.tuples(st.sampled_from(["ann", "bot", "carl"]), EVENTS), max_size=20))
def test_what_is_seen_is_a_part_of_the_trace_in_its_order(acts: list[tuple[str, Event]]) -> None:
    facts = [by("human", event, actor=name) for name, event in acts]
    records = records_of(*facts)
    for name in ("ann", "bot", "carl"):
        visibility = Visibility(name)
        seen = [s for r in records if (s := visibility.see(r)) is not None]
        versions = [r.version for r in seen]
        assert versions == sorted(set(versions))
        assert {r.version for r in records if r.actor == name} <= set(versions)
        assert all(r == records[r.version - 1] for r in seen)
        assert not any(visibility.is_news(r) for r in seen if r.actor == name)


async def test_a_view_knows_under_which_ids_its_actor_has_sent_what() -> None:
    found: list[tuple[int, dict[str, int]]] = []

    async def ann(context: ActorContext) -> None:
        [record] = await context.emit(Say("hello"), id="of-ann")
        context.look()
        found.append((record.version, context.view.sent))
        await context.news()
        await context.finish()

    async def bot(context: ActorContext) -> None:
        while not context.view.messages:
            await context.news()
            context.look()
        found.append((0, context.view.sent))
        await context.say("hello")

    await played(a_session(human(ann), agent(bot)))
    version = found[0][0]
    assert found == [(version, {"of-ann": version}), (0, {})]
