"""Advice for chats without an output, by cases and against a reader's advice on real chats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, ActionTaken, MessageSent
from duolog.interop.importers.tau import TauImporter
from duolog.scoring.chat_control import ChatAdvice, ChatController, ChatRules
from duolog.scoring.control import Controller
from duolog.scoring.control_rules import Advice, ControlRules
from duolog.scoring.trajectory.fold import TrajectoryFold
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


CASES: list[tuple[list[Say], str]] = [
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
    ([("h", "Help"), ("a", "With what?"), ("h", "No, a real person please!")], "escalate"),
    ([("h", "I don't want to talk to a person. When do you open?")], "answer"),
    ([("a", OFFER), ("h", "No, I don't need to speak to anyone at your staff.")], "answer"),
    ([("h", "Where is my order 123?")], "answer"),
    ([("h", "I'd like to order two lamps.")], "ask"),
]


@pytest.mark.parametrize(("said", "move"), CASES)
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


# --- through the controller that follows updates ---------------------------------------------------


def advised(*said: Say, rules: ControlRules | None = None, **config: JSON) -> list[Advice]:
    """What ``Controller`` advises in a session with this config, by the updates of scoring."""
    script = RecordWriter()
    fold, controller = TrajectoryFold("s"), Controller("s", rules)
    records = [script.opened(config=config)]
    for who, text in said:
        if who == "h":
            records.append(script.human(text))
        else:
            event = ActionTaken(name=text) if who == "t" else MessageSent(text=text)
            records.append(script.agent(event))
    updates = [update for record in records for update in fold.feed(record)]
    return [found for update in updates if (found := controller.feed(update)) is not None]


@pytest.mark.parametrize(("said", "move"), CASES)
def test_a_session_without_output_gets_these_rules_by_itself(said: list[Say], move: str) -> None:
    found = advised(*said, output=None)
    assert [one.move for one in found] == moves(*said)
    assert found[-1].move == move


SATISFIED: list[Say] = [
    ("h", "How do I reset my password?"),
    ("a", "Under Settings, Security."),
    ("h", "That worked, thank you!"),
    ("a", "Glad to hear it. Is there anything else?"),
    ("h", "No, thanks, bye."),
]
ENOUGH: list[Say] = [
    ("h", "Hello, I have a question."),
    ("a", "Yes?"),
    ("h", "Stop asking me things."),
]
PERSON: list[Say] = [("h", "Hi"), ("a", "Hello."), ("h", "I want to speak to a real person.")]


@pytest.mark.parametrize("said", [SATISFIED, ENOUGH, PERSON])
def test_a_session_that_says_nothing_of_an_output_asks_nothing_of_who_wants_no_questions(
    said: list[Say],
) -> None:
    last = advised(*said)[-1]
    assert last.move in ("answer", "escalate")
    assert last.round == sum(who == "h" for who, _ in said)
    assert last.why == (advised(*said, output=None)[-1].why)


def test_each_message_of_a_chat_has_its_advice_once() -> None:
    found = advised(*SATISFIED, output=None)
    assert [one.round for one in found] == [1, 2, 3]
    assert advised(("h", "Das ist falsch, bitte stornieren Sie es."), output=None) == []


def test_a_chat_without_tolerance_left_is_escalated() -> None:
    said: list[Say] = [("h", "Where is it?"), ("a", "It comes."), ("h", "When?"), ("a", "Soon.")]
    assert advised(*said, ("h", "Where is it now?"), output=None)[-1].move == "answer"
    rules = ControlRules(budget=2.0)
    last = advised(*said, ("h", "Where is it now?"), rules=rules, output=None)[-1]
    assert (last.move, last.why) == ("escalate", "effort of 3 rounds since the last gain")


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
        fold, follower = TrajectoryFold(session), Controller(session)
        wanted = iter(advice.split())
        for record in trace_of([one for one in found if one.session == session]):
            controller.feed(record)
            for update in fold.feed(record):
                follower.feed(update)
            if record.role == "human" and record.kind == "MessageSent":
                assert controller.advice is None or follower.advice.move == controller.advice.move
                want = next(wanted, None)
                move = controller.advice and controller.advice.move
                agreed[number < 9] += want is not None and move == _MOVES[want]
    assert agreed[True] >= 55  # of 64
    assert agreed[False] >= 28  # of 39
