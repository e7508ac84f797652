"""What one input may take is counted before anything is built of it."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from pathlib import Path

import msgspec
import pytest
from duolog.engine.budget import Budget, is_inside, too_deep
from duolog.engine.errors import InvalidInput, TooLarge
from duolog.interop.importers.traces.otlp_protobuf import REQUEST_FIELDS
from hypothesis import given
from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.integers(0, 9) | st.text('ab,{["\\', max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


def values(value: object) -> int:
    """How many commas and opening brackets a value has outside of texts."""
    if isinstance(value, dict):
        return max(len(value), 1) + sum(map(values, value.values()))
    if isinstance(value, list):
        return max(len(value), 1) + sum(map(values, value))
    return 0


@given(JSON)
def test_the_values_of_json_are_counted_outside_of_texts(value: object) -> None:
    data = json.dumps(value).encode()
    count = values(value)
    assert Budget(objects=max(count, 1)).holds(data)
    assert count < 2 or len(data) <= count - 1 or not Budget(objects=count - 1).holds(data)


def test_json_is_refused_by_its_size_and_by_its_values() -> None:
    budget = Budget(size=20, objects=3)
    budget.check_json(b'["a,,,,,,,","b"]')
    budget.check_json('["a,,,,,,,","b"]')
    budget.check_json(msgspec.Raw(b"[1,2,3]"))
    with pytest.raises(TooLarge, match="it has 21 bytes; at most 20 are read"):
        budget.check_json(b" " * 21)
    with pytest.raises(TooLarge, match="more than 3 values"):
        budget.check_json(b"[{},{}]")
    with pytest.raises(TooLarge, match="more than 3 values"):
        budget.check_json(b'""' * 8 + b"[,,,")  # it is not JSON, and the count ends all the same


@given(st.binary(max_size=200))
def test_a_message_that_is_damaged_is_left_to_its_parser(data: bytes) -> None:
    Budget(objects=len(data) // 2 + 1).check_protobuf(data, REQUEST_FIELDS)


def test_fields_are_counted_in_the_messages_that_are_known() -> None:
    inner = b"\x12\x00" * 5
    message = b"\x0a\x0c" + b"\x12\x0a" + inner
    Budget(objects=7).check_protobuf(message, REQUEST_FIELDS)
    with pytest.raises(TooLarge, match="more than 6 values"):
        Budget(objects=6).check_protobuf(message, REQUEST_FIELDS)
    Budget(objects=1).check_protobuf(message, {})  # all of it is one field
    with pytest.raises(TooLarge, match="deeper than 1 levels"):
        Budget(objects=7, depth=1).check_protobuf(message, dict(REQUEST_FIELDS))


def test_the_known_fields_are_those_of_the_protocol() -> None:
    proto = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

    def compare(message: object, fields: object, seen: tuple[str, ...]) -> None:
        own = {one.number: one.message_type for one in message.fields if one.message_type}  # type: ignore[attr-defined]
        assert isinstance(fields, dict)
        assert set(fields) == set(own), message.full_name  # type: ignore[attr-defined]
        for number, inner in own.items():
            if inner.full_name not in seen:
                compare(inner, fields[number], (*seen, inner.full_name))

    compare(proto.ExportTraceServiceRequest.DESCRIPTOR, REQUEST_FIELDS, ())


def test_compressed_data_become_no_more_than_their_share() -> None:
    budget = Budget(size=10 * 2**20, ratio=100)
    small = b"a" * 4 * 2**20  # as much as anything may become
    assert budget.inflated(gzip.compress(small)) == small
    assert budget.inflated(zlib.compress(b"x") + gzip.compress(b"y")) == b"xy"
    with pytest.raises(TooLarge, match=r"compressed bytes become .*; at most 100 for each byte"):
        budget.inflated(gzip.compress(small + b"a"))
    with pytest.raises(TooLarge, match="at most 4,000,000 are read"):
        Budget(size=4_000_000).inflated(gzip.compress(small))
    with pytest.raises(InvalidInput, match="does not decompress"):
        budget.inflated(b"no gzip")
    with pytest.raises(InvalidInput, match="cut off"):
        budget.inflated(gzip.compress(small)[:-9])


def test_lines_are_read_up_to_a_length() -> None:
    budget = Budget(size=5)
    assert list(budget.lines(io.BytesIO(b"abcd\nabcde\n\nabcde"))) == [
        b"abcd\n",
        b"abcde\n",
        b"\n",
        b"abcde",
    ]
    with pytest.raises(TooLarge, match="a line has more than 5 bytes"):
        list(budget.lines(io.BytesIO(b"a\nabcdef\n")))


def test_depth_is_told_without_recursion() -> None:
    assert too_deep(b"[" * 100_000 + b"]" * 100_000, 100)
    assert not too_deep(b'["[[[[[[[[[["]', 1)


def test_a_link_leads_inside_or_outside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (inside / "link").symlink_to(inside / "deep")
    (inside / "away").symlink_to(outside)
    (inside / "loop").symlink_to(inside / "loop")
    (inside / "proc").symlink_to("/proc")
    assert is_inside(inside / "link", inside)
    for name in ("away", "loop", "proc", "../outside"):
        assert not is_inside(inside / name, inside)
    assert not is_inside(Path("/proc/self/status"), Path("/"))
