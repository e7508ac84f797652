"""Everything the log accepts can be read back: one check for every store and entry point."""

from __future__ import annotations

import json
import types
import typing
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from duolog.engine import codec
from duolog.engine.budget import too_deep
from duolog.engine.errors import CodecError, InvalidInput
from duolog.engine.events import (
    EVENTS,
    ActionResolved,
    Event,
    FeedbackGiven,
    MessageSent,
    ProgressRated,
    Role,
    SessionOpened,
    SnapshotTaken,
    Unknown,
    UtilityScored,
)
from duolog.engine.log.exchange.jsonl_export import from_jsonl, to_jsonl
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.engine.validation import BODY
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**53, 2**63, 2**64, 2**200, -1, 0, 1, 5]),
    st.floats(),
    st.text(),
    st.sampled_from(["", "utc", "real", "up", "ok", "human", "\ud800", "\x00", "NaN"]),
    st.binary(max_size=4),
    st.lists(st.one_of(st.integers(), st.floats(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.one_of(st.text(max_size=2), st.integers()), st.floats(), max_size=3),
    st.tuples(st.text(max_size=3), st.floats()),
    st.builds(set, st.lists(st.integers(), max_size=2)),
    st.just(object()),
)


def fitting(kind: object) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if kind is Any:
        return st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
            max_leaves=4,
        )
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([fitting(one) for one in inside])
    if origin is typing.Literal:
        return st.sampled_from(inside)
    if origin is tuple:
        return st.lists(fitting(inside[0]), max_size=2).map(tuple)
    if origin is not None:  # a mapping
        return st.dictionaries(st.text(max_size=3), fitting(inside[1]), max_size=2)
    if kind is str:
        return st.text(max_size=5)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    return st.from_type(typing.cast(type, kind))


def structs(kind: type[msgspec.Struct], odd: str = "") -> st.SearchStrategy[Any]:
    """Structs of a kind, with anything at all in one field."""
    hints = typing.get_type_hints(kind)
    fields = {name: fitting(hints[name]) for name in kind.__struct_fields__}
    if odd:
        fields[odd] = ODD
    return st.fixed_dictionaries(fields).map(lambda values: kind(**values))


def mistyped() -> st.SearchStrategy[Event]:
    """Events of every kind, of whose fields at most one is not of its type."""
    return st.one_of(
        [structs(kind, odd) for kind in EVENTS.values() for odd in ("", *kind.__struct_fields__)]
    )


@pytest.fixture(
    params=["memory://", "sqlite:///{}/a.db?durability=normal"], ids=["memory", "sqlite"]
)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url: str = request.param
    return url.format(tmp_path)


def by(event: object, **envelope: object) -> Draft:
    fields: dict[str, Any] = {"actor": "a", "role": "human", "time": 1.0, **envelope}
    return Draft(event, **fields)  # type: ignore[arg-type]


@settings(max_examples=examples(400))
@given(mistyped())
async def test_an_append_takes_what_it_can_read_again_and_nothing_else(event: Event) -> None:
    if isinstance(event, SnapshotTaken):
        with suppress(CodecError):
            event = msgspec.structs.replace(event, digest=codec.digest(event.content))
    async with open_log("memory://") as log:
        try:
            [record] = await log.append("s", [by(event)])
        except (CodecError, InvalidInput):
            return
        [line] = [to_jsonl(one) async for one in log.read("s")]
        assert not (await log.verify()).problems
    held = from_jsonl(line)
    assert held == record
    assert isinstance(held.event, Event)
    # Compared as numbers: an integer in a float field is read back as a float.
    written, again = codec.encode_body(event), codec.encode_body(held.event)
    assert msgspec.json.decode(again) == msgspec.json.decode(written)
    said = msgspec.to_builtins(event, str_keys=True)
    assert msgspec.json.decode(held.body or b"") == msgspec.json.decode(json.dumps(said))


WRONG: dict[str, tuple[object, str]] = {
    "a clock that does not exist": (
        SessionOpened(task="t", instance="i", participants=(), clock="real"),  # type: ignore[arg-type]
        "SessionOpened .* does not decode: Invalid enum value 'real'",
    ),
    "a rating in words": (ProgressRated(round=1, rating="good"), "Expected `int | null`"),  # type: ignore[arg-type]
    "a value that is no number": (
        UtilityScored(scorer=None, value=0.5),  # type: ignore[arg-type]
        "UtilityScored .* does not decode",
    ),
    "NaN for a share": (FeedbackGiven(edits_kept=float("nan")), "a number that JSON cannot say"),
    "NaN in an observation": (
        ActionResolved(action=1, outcome="ok", observation={"x": [float("inf")]}),
        "a number that JSON cannot say",
    ),
    "one name twice": (
        ActionResolved(action=1, outcome="ok", observation={1: "a", "1": "b"}),  # type: ignore[dict-item]
        "two names are the same",
    ),
    "another's digest": (SnapshotTaken(content="x", digest="d"), "digest is not that of"),
    "a known kind that does not decode": (
        Unknown("MessageSent", 1, b'{"kind":"MessageSent"}'),
        "does not decode",
    ),
    "a body of another kind": (
        Unknown("Odd", 1, b'{"kind":"MessageSent","text":"x"}'),
        "another kind than Odd",
    ),
    "a body that is no JSON": (Unknown("Odd", 1, b"{"), "is not JSON"),
    "a newer body that is no JSON": (Unknown("MessageSent", 99, b"{"), "is not JSON"),
    "an empty kind": (Unknown("", 1, b"{}"), "a kind that is not empty"),
    "no event": ("MessageSent", "only events can be appended, not a str"),
}


@pytest.mark.parametrize(("event", "why"), WRONG.values(), ids=WRONG.keys())
async def test_what_could_not_be_read_again_is_refused(where: str, event: object, why: str) -> None:
    async with open_log(where) as log:
        with pytest.raises((CodecError, InvalidInput), match=why):
            await log.append("s", [by(MessageSent(text="before")), by(event)])
        assert log.statistics().position == 0
        assert not (await log.verify()).problems


@pytest.mark.parametrize(
    "envelope",
    [
        {"time": "1"},
        {"time": float("nan")},
        {"time": 10**400},
        {"actor": 7},
        {"actor": "\ud800"},
        {"role": "judge"},
        {"role": ["human"]},
        {"cause": 3},
        {"seen": "3"},
        {"seen": 2**63},
        {"seen": -1},
        {"seen": True},
        {"id": 5},
        {"id": "\udfff"},
    ],
    ids=repr,
)
async def test_an_envelope_that_could_not_be_read_again_is_refused(
    where: str, envelope: dict[str, object]
) -> None:
    async with open_log(where) as log:
        with pytest.raises(InvalidInput, match=r"MessageSent"):
            await log.append("s", [by(MessageSent(text="x"), **envelope)])
        assert log.statistics().position == 0


async def test_names_have_to_be_text(where: str) -> None:
    async with open_log(where) as log:
        for session, stream in (("\ud800", "trace"), ("s", "\ud800"), (b"s", "trace"), ("s", 3)):
            with pytest.raises(InvalidInput, match="name of a"):
                await log.append(session, [by(MessageSent(text="x"))], stream=stream)  # type: ignore[arg-type]


def nested(levels: int) -> object:
    value: object = "]}["
    for number in range(levels):
        value = [value] if number % 2 else {"[": value}
    return value


async def test_every_event_may_be_as_deep_as_the_limit_and_no_deeper(where: str) -> None:
    async with open_log(where) as log:
        for levels, role in ((BODY.depth - 1, "human"), (BODY.depth, "agent"), (800, "agent")):
            content = nested(levels)
            event = SnapshotTaken(content=content, digest=codec.digest(content))  # type: ignore[arg-type]
            unknown = Unknown("Odd", 1, msgspec.json.encode({"a": content}))
            if role == "human":
                await log.append("s", [by(event), by(unknown)])
                continue
            for one in (event, unknown):
                with pytest.raises(CodecError, match=f"nests deeper than {BODY.depth} levels"):
                    await log.append("s", [by(one, role=typing.cast(Role, role))])
        assert log.statistics().position == 2


@given(
    st.recursive(
        st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner),
    )
)
def test_the_depth_is_that_of_a_walk(value: object) -> None:
    def depth(one: object) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    for levels in range(4):
        assert too_deep(msgspec.json.encode(value), levels) is (depth(value) > levels)
