"""The part of JSON Schema that arguments of actions are checked against."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from duolog.engine.events import JSON
from duolog.engine.models.json_schema import describe_schema, problems
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
    },
    "required": ["dish"],
    "additionalProperties": {"type": "number"},
}


@pytest.mark.parametrize(
    "value",
    [
        {"dish": "soup"},
        {"dish": "pasta", "portions": 9, "hot": None, "table": 4},
        {"dish": "pasta", "portions": 2.0, "notes": [], "tip": 1.5},
        {"dish": "soup", "notes": ["mild", ""], "anything": {"at": ["all"]}},
    ],
)
def test_what_fits(value: JSON) -> None:
    assert list(problems(value, ORDER)) == []


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "the value has to be an object, not []"),
        ({}, "dish is missing"),
        ({"dish": "stew"}, "dish has to be 'soup' or 'pasta', not 'stew'"),
        ({"dish": "soup", "portions": "2"}, "portions has to be a whole number, not '2'"),
        ({"dish": "soup", "portions": True}, "portions has to be a whole number, not true"),
        ({"dish": "soup", "portions": 0}, "portions has to be at least 1, not 0"),
        ({"dish": "soup", "portions": 10}, "portions may be at most 9, not 10"),
        (
            {"dish": "soup", "notes": ["so much"]},
            "notes[0] may have at most 5 characters, and has 7",
        ),
        ({"dish": "soup", "notes": ["a", "b", "c"]}, "notes may have at most 2 entries, and has 3"),
        ({"dish": "soup", "notes": "mild"}, "notes has to be a list, each entry text, not 'mild'"),
        ({"dish": "soup", "hot": 1}, "hot has to be true or false or null, not 1"),
        ({"dish": "soup", "table": 5}, "table has to be 4, not 5"),
        ({"dish": "soup", "tip": "much"}, "tip has to be a number, not 'much'"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(value: JSON, complaint: str) -> None:
    assert list(problems(value, ORDER)) == [complaint]


def test_true_is_not_one() -> None:
    assert list(problems(True, {"enum": [1]}))
    assert list(problems(1, {"const": True}))


def test_a_schema_that_says_nothing_takes_anything() -> None:
    assert describe_schema({}) == "any value"
    assert list(problems({"a": [1]}, {})) == []


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json, json)
def test_no_value_and_no_schema_breaks_it(value: JSON, schema: JSON) -> None:
    wanted: Mapping[str, JSON] = schema if isinstance(schema, dict) else {"items": schema}
    for problem in problems(value, wanted):
        assert problem
    assert describe_schema(wanted)
