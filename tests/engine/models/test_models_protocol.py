"""Requests and replies: when two requests are the same, and the fields of a recorded reply."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.errors import (
    CodecError,
    ModelBadReply,
    ModelDenied,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from duolog.engine.events import Tokens
from duolog.engine.models import (
    Asker,
    Message,
    ModelReply,
    ModelRequest,
    Tool,
    ToolCall,
    request_digest,
)
from duolog.engine.models.calls.call_records import (
    failure_text,
    recorded_failure,
    recorded_reply,
    reply_json,
)
from hypothesis import given
from hypothesis import strategies as st

REQUEST = ModelRequest(
    model="m",
    messages=(
        Message(role="system", content="Be brief."),
        Message(role="user", content="A weekend in Oslo?", name="ada"),
        Message(role="assistant", tool_calls=(ToolCall(id="1", name="find", arguments="{"),)),
        Message(role="tool", content="nothing", tool_call_id="1"),
    ),
    tools=(Tool(name="find", parameters={"type": "object"}),),
)


def test_who_asks_is_no_part_of_the_digest() -> None:
    asked = msgspec.structs.replace(REQUEST, asker=Asker("session", "agent"))
    assert request_digest(asked) == request_digest(REQUEST)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"messages": REQUEST.messages[:3]},
        {"tools": ()},
        {"tool_choice": "required"},
        {"temperature": 0.0},
        {"max_tokens": 5},
        {"seed": 1},
        {"stop": ("END",)},
        {"options": {"reasoning_effort": "low"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_all_else_is(change: dict[str, object]) -> None:
    other = msgspec.structs.replace(REQUEST, **change)
    assert request_digest(other) != request_digest(REQUEST)


def test_the_digest_stays_what_it_was() -> None:
    """Logs hold it: a release that changed it could not resume what an older one began."""
    assert request_digest(REQUEST) == "77d430bea1d951ed673d24af82762c69"


counts = st.none() | st.integers(0, 10**6)
replies = st.builds(
    ModelReply,
    text=st.text(),
    tool_calls=st.lists(
        st.builds(ToolCall, id=st.text(), name=st.text(), arguments=st.text()), max_size=3
    ).map(tuple),
    finish=st.none() | st.sampled_from(["stop", "length", "tool_calls"]),
    tokens=st.builds(Tokens, prompt=counts, completion=counts, cached=counts, reasoning=counts),
    cost=st.none() | st.floats(0, 100),
    latency=st.floats(0, 1000),
    model=st.none() | st.text(),
    from_cache=st.booleans(),
)


@given(replies)
def test_a_recorded_reply_is_the_reply(reply: ModelReply) -> None:
    recorded = msgspec.json.decode(msgspec.json.encode(reply_json(reply)))
    assert recorded_reply(recorded, reply.tokens, reply.cost, reply.latency) == reply


def test_arguments_are_kept_as_they_were_written() -> None:
    reply = ModelReply(tool_calls=(ToolCall(id="1", name="find", arguments='{"city": "Os'),))
    assert msgspec.json.decode(msgspec.json.encode(reply_json(reply))) == {
        "tool_calls": [{"id": "1", "name": "find", "arguments": '{"city": "Os'}]
    }


@pytest.mark.parametrize("recorded", ["some text", 4, None, {"text": 5}])
def test_what_no_caller_recorded_is_an_error(recorded: object) -> None:
    with pytest.raises(CodecError, match="does not read as one of a model"):
        recorded_reply(recorded, Tokens(), None, 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind",
    [
        ModelBadReply,
        ModelDenied,
        ModelRateLimited,
        ModelRefused,
        ModelTimeout,
        ModelUnavailable,
    ],
)
def test_a_recorded_failure_is_of_its_kind(kind: type[ModelError]) -> None:
    error = kind("it said: no: not now")
    again = recorded_failure(failure_text(error))
    assert type(again) is kind
    assert str(again) == str(error)


def test_a_failure_of_no_known_kind_is_a_failure_still() -> None:
    assert type(recorded_failure("Whatever: it broke")) is ModelError
    assert str(recorded_failure("it broke")) == "it broke"
