"""What arguments of actions are checked against: JSON Schema of any draft, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON
from duolog.engine.models.prompting.json_schema import compile_schema, describe_schema
from hypothesis import given
from hypothesis import strategies as st

ORDER: Mapping[str, JSON] = {
    "type": "object",
    "properties": {
        "dish": {"enum": ["soup", "pasta"]},
        "portions": {"type": "integer", "minimum": 1, "maximum": 9},
        "notes": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
        "hot": {"type": ["boolean", "null"]},
        "table": {"const": 4},
        "anything": True,
        "wine": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "phone": {"type": "string", "pattern": "^[0-9]+$"},
        "side": {"$ref": "#/$defs/side"},
    },
    "required": ["dish"],
    "additionalProperties": {"type": "number"},
    "$defs": {
        "side": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "with": {"$ref": "#/$defs/side"}},
            "required": ["name"],
        }
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {"dish": "soup"},
        {"dish": "pasta", "portions": 9, "hot": None, "table": 4},
        {"dish": "pasta", "portions": 2.0, "notes": [], "tip": 1.5},
        {"dish": "soup", "notes": ["mild", ""], "anything": {"at": ["all"]}},
        {"dish": "soup", "wine": ["red"], "phone": "030"},
        {"dish": "soup", "side": {"name": "bread", "with": {"name": "butter"}}},
    ],
)
def test_what_fits(value: JSON) -> None:
    assert compile_schema(ORDER).errors(value) == []


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([], "[] is not of type 'object'"),
        ({}, "'dish' is a required property"),
        ({"dish": "stew"}, "dish: 'stew' is not one of ['soup', 'pasta']"),
        ({"dish": "soup", "portions": "2"}, "portions: '2' is not of type 'integer'"),
        ({"dish": "soup", "portions": True}, "portions: true is not of type 'integer'"),
        ({"dish": "soup", "portions": 0}, "portions: 0 is less than the minimum of 1"),
        ({"dish": "soup", "portions": 10}, "portions: 10 is greater than the maximum of 9"),
        (
            {"dish": "soup", "notes": ["so much"]},
            "notes[0]: 'so much' is too long (maxLength is 5)",
        ),
        (
            {"dish": "soup", "notes": ["a", "b", "c"]},
            "notes: ['a', 'b', 'c'] is too long (maxItems is 2)",
        ),
        ({"dish": "soup", "notes": "mild"}, "notes: 'mild' is not of type 'array'"),
        ({"dish": "soup", "hot": 1}, "hot: 1 is not of type 'boolean', 'null'"),
        ({"dish": "soup", "table": 5}, "table: 5 is not 4"),
        ({"dish": "soup", "tip": "much"}, "tip: 'much' is not of type 'number'"),
        ({"dish": "soup", "wine": 5}, "wine: 5 is not text or a list, each entry text"),
        ({"dish": "soup", "wine": ["red", 5]}, "wine[1]: 5 is not of type 'string'"),
        ({"dish": "soup", "phone": "none"}, "phone: 'none' does not match '^[0-9]+$'"),
        (
            {"dish": "soup", "side": {"name": "bread", "with": {}}},
            "side.with: 'name' is a required property",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_path_and_value(value: JSON, error: str) -> None:
    assert compile_schema(ORDER).errors(value) == [error]


SHAPES: Mapping[str, JSON] = {
    "type": "array",
    "items": {
        "anyOf": [{"$ref": "#/$defs/Square"}, {"$ref": "#/$defs/Circle"}],
        "discriminator": {
            "propertyName": "is",
            "mapping": {"square": "#/$defs/Square", "circle": "#/$defs/Circle"},
        },
    },
    "$defs": {
        "Square": {
            "type": "object",
            "properties": {"is": {"enum": ["square"]}, "side": {"type": "integer"}},
            "required": ["is", "side"],
        },
        "Circle": {
            "type": "object",
            "properties": {"is": {"enum": ["circle"]}, "radius": {"type": "integer"}},
            "required": ["is", "radius"],
        },
    },
}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"is": "square"}, "[0]: 'side' is a required property"),
        ({"is": "circle", "radius": "big"}, "[0].radius: 'big' is not of type 'integer'"),
        ({"radius": 1}, "[0]: 'is' is missing; choose from square, circle"),
        ({"is": "line"}, "[0].is: 'line' is unknown; choose from square, circle"),
        ("square", "[0]: 'square' is not an object with 'is', one of square, circle"),
    ],
)
def test_a_tagged_union_is_checked_against_the_member_that_the_tag_names(
    value: JSON, error: str
) -> None:
    assert compile_schema(SHAPES).errors([value]) == [error]


def test_every_error_is_one_line_however_large_the_value() -> None:
    value = {"dish": "x\n" * 5000, "portions": "9" * 5000, "lots\nof": ["x"] * 5000}
    errors = compile_schema(ORDER).errors(value)
    assert len(errors) == 3
    assert all("\n" not in error and len(error) < 320 for error in errors)


def test_true_is_not_one() -> None:
    assert compile_schema({"enum": [1]}).errors(True)
    assert compile_schema({"const": True}).errors(1)


def test_a_schema_that_says_nothing_takes_anything() -> None:
    assert describe_schema({}) == "any value"
    assert compile_schema({}).errors({"a": [1]}) == []


def test_references_are_described_by_what_they_lead_to() -> None:
    schema: Mapping[str, JSON] = {
        "type": "array",
        "items": {"$ref": "#/$defs/day"},
        "$defs": {"day": {"enum": ["mon", "tue"]}, "loop": {"$ref": "#/$defs/loop"}},
    }
    assert describe_schema(schema) == "a list, each entry 'mon' or 'tue'"
    assert describe_schema({"$ref": "#/$defs/loop"}, schema) == "any value"
    assert describe_schema({"$ref": "#/$defs/none"}, schema) == "any value"


def test_each_draft_means_what_it_says() -> None:
    draft = "http://json-schema.org/draft-04/schema#"
    old: Mapping[str, JSON] = {"$schema": draft, "minimum": 1, "exclusiveMinimum": True}
    assert compile_schema(old).errors(1) == ["1 is less than or equal to the minimum of 1"]
    assert compile_schema({"exclusiveMinimum": 1}).errors(2) == []
    with pytest.raises(InvalidInput, match="not a valid JSON Schema: exclusiveMinimum: true"):
        compile_schema({"minimum": 1, "exclusiveMinimum": True})


def test_a_schema_is_compiled_once() -> None:
    assert compile_schema(MappingProxyType(dict(ORDER))) is compile_schema(ORDER)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": 7}, "type: 7 is not valid under any of the given schemas"),
        ({"pattern": "("}, r"pattern: '\(' is not a 'regex'"),
        ({"$schema": "http://a.test/mine"}, "'http://a.test/mine' is not a known draft"),
        ({"$schema": 4}, "4 is not a known draft"),
        ({"$ref": "#/$defs/none"}, "'#/\\$defs/none' leads nowhere within it"),
        ({"$ref": "#/x", "x": 3}, "3 is not of type 'object', 'boolean'"),
        ({"$ref": "#/x", "x": {"type": 7}}, "type: 7 is not valid"),
        ({"$ref": 5}, r"\$ref: 5 is not of type 'string'"),
        ({"default": {1}}, "cannot hold a set"),
    ],
)
def test_an_invalid_schema_is_refused_as_such(schema: Mapping[str, JSON], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        compile_schema(schema)


@pytest.mark.parametrize(
    "elsewhere", ["https://example.test/a.json", "file:///etc/hosts", "b.json"]
)
def test_a_reference_to_elsewhere_is_refused_and_never_fetched(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetch)
    monkeypatch.setattr("socket.socket.connect", fetch)
    with pytest.raises(InvalidInput, match="nothing is fetched from elsewhere"):
        compile_schema({"properties": {"a": {"items": {"$ref": elsewhere}}}})


def test_a_schema_that_refers_to_itself_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested too deeply"):
        compile_schema({"$ref": "#"}).errors(1)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keywords = st.dictionaries(
    st.sampled_from(["type", "items", "enum", "anyOf", "minimum", "$ref", "required", "pattern"]),
    json,
    max_size=3,
)


@given(json, keywords)
def test_no_value_and_no_schema_breaks_it(value: JSON, schema: Mapping[str, JSON]) -> None:
    assert describe_schema(schema)
    with suppress(InvalidInput):
        assert all(compile_schema(schema).errors(value))
