"""Advice for chats without an output, by cases and against a reader's advice on real chats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ActionTaken, MessageSent, SessionClosed
from duolog.engine.records import Record
from duolog.interop.importers.tau import TauImporter
from duolog.scoring.chat_control import ChatAdvice, ChatController, ChatRules, advise_chats
from duolog.testing.records import RecordWriter
from foreign_logs import read, trace_of

Say = tuple[str, str]


def told(*said: Say, rules: ChatRules | None = None) -> list[ChatAdvice | None]:
    """The advice after each message of the human: ``h`` says something, ``a`` the agent, ``t`` a tool."""
    script = RecordWriter()
    controller = ChatController("s", rules)
    controller.feed(script.opened())
    found: list[ChatAdvice | None] = []
    for who, text in said:
        if who == "h":
            controller.feed(script.human(text))
            found.append(controller.advice)
        else:
            event = ActionTaken(name=text) if who == "t" else MessageSent(text=text)
            controller.feed(script.agent(event))
    return found


def moves(*said: Say, rules: ChatRules | None = None) -> list[str | None]:
    return [None if one is None else one.move for one in told(*said, rules=rules)]


OFFER = "I cannot do that. Would you like me to transfer you to a human agent?"


@pytest.mark.parametrize(
    ("said", "move"),
    [
        ([("h", "What are your opening hours?")], "answer"),
        ([("h", "I need to change my reservation, please.")], "ask"),
        ([("h", "My parcel is late.")], "ask"),
        ([("h", "Please cancel my order.")], "ask"),
        (
            [("h", "Hi"), ("t", "find"), ("a", "Two flights."), ("h", "I'll take flight AB123.")],
            "confirm",
        ),
        ([("a", "Shall I proceed with it?"), ("h", "Yes, please.")], "answer"),
        ([("a", OFFER), ("h", "Yes, please transfer me.")], "escalate"),
        ([("h", "I want to speak to a real person.")], "escalate"),
        ([("h", "Hi"), ("a", "It comes tomorrow."), ("h", "Great, thank you!")], "answer"),
        ([("h", "Stop asking me things.")], "answer"),
        ([("h", "I'll write to your colleagues, thank you.")], "answer"),
    ],
)
def test_the_rules(said: list[Say], move: str) -> None:
    assert moves(*said)[-1] == move


def test_a_satisfied_human_is_asked_nothing_more() -> None:
    found = told(
        ("h", "How do I reset my password?"),
        ("a", "Under Settings, Security."),
        ("h", "That worked, thank you!"),
        ("a", "Glad to hear it. Is there anything else?"),
        ("h", "Thanks, bye."),
    )
    assert [one and one.move for one in found] == ["answer"] * 3
    assert found[-1] is not None
    assert found[-1].why == "the human is satisfied"


def test_who_wants_no_questions_gets_none_until_they_bring_up_something_new() -> None:
    assert moves(
        ("h", "I need to change my booking."),
        ("a", "Which one?"),
        ("h", "Stop asking me questions."),
        ("a", "Here is what I know."),
        ("h", "Hm."),
        ("h", "I need to cancel my other booking, too."),
    ) == ["ask", "answer", "answer", "ask"]


def test_trouble_again_and_again_is_escalated() -> None:
    said: list[Say] = [("h", "Where is my parcel?")]
    for _ in range(2):
        said += [("a", "It is on its way."), ("h", "That is wrong, you did not understand me.")]
    assert moves(*said, rules=ChatRules(tolerance=2))[-1] == "escalate"
    assert moves(*said, rules=ChatRules(tolerance=3))[-1] != "escalate"


def test_after_some_questions_in_a_row_the_agent_answers() -> None:
    said: list[Say] = [("h", "I need to change my booking.")]
    for question in ("Which one?", "Which name?", "Which day?"):
        said += [("a", question), ("h", "The usual")]
    assert moves(*said, rules=ChatRules(questions=3))[-1] == "answer"
    assert moves(*said, rules=ChatRules(questions=4))[-1] == "ask"


def test_a_message_that_cannot_be_read_has_no_advice() -> None:
    assert told(("h", "Ich möchte bitte meine Bestellung stornieren, das ist falsch.")) == [None]


def test_rules_and_sessions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match="below 1"):
        ChatRules(tolerance=0)
    with pytest.raises(InvalidInput, match="was given to the controller"):
        ChatController("other").feed(RecordWriter().opened())


async def test_a_stream_of_records_is_advised_chat_by_chat() -> None:
    script = RecordWriter()
    closed = SessionClosed(reason="ended", by="human")
    records = [script.opened(), script.human("My parcel is late."), script.agent(closed)]

    async def stream() -> AsyncIterator[Record]:
        for record in records:
            yield record

    assert [one.move async for one in advise_chats(stream())] == ["ask"]


# --- a reader's advice ----------------------------------------------------------------------------

READ = {
    0: "k k a a c a a a",
    1: "k k a c a a a a c c a",
    2: "k k k a c a c a a",
    3: "k a c a",
    4: "k a a e",
    5: "k k a a c a a",
    6: "a a e",
    7: "k k k a c a a a a c e",
    8: "k a c a c a a",
    9: "k a a a e a",
    10: "k k a a c a",
    11: "a a a a c a a a",
    12: "k k k a c a c e",
    13: "k a c c a a a",
    14: "k a a a",
}
"""A reader's advice after each message of the human, by number of the trajectory: answer (a), ask (k), confirm
(c), escalate (e). The first nine were known when the rules were written."""
_MOVES = {"a": "answer", "k": "ask", "c": "confirm", "e": "escalate"}


def test_it_agrees_with_a_reader_more_often_than_not(test_data: Callable[[str], Path]) -> None:
    found, _ = read(TauImporter(), test_data("chat/tau-bench-airline-sample.json"))
    sessions = list(dict.fromkeys(one.session for one in found))
    agreed = {False: 0, True: 0}
    for number, advice in READ.items():
        session = sessions[number]
        controller = ChatController(session)
        wanted = iter(advice.split())
        for record in trace_of([one for one in found if one.session == session]):
            controller.feed(record)
            if record.role == "human" and record.kind == "MessageSent":
                want = next(wanted, None)
                move = controller.advice and controller.advice.move
                agreed[number < 9] += want is not None and move == _MOVES[want]
    assert agreed[True] >= 55  # of 64
    assert agreed[False] >= 28  # of 39
