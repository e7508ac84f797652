"""JSON Patch: the examples of RFC 6902, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from duolog.engine.errors import InvalidInput
from duolog.interop.agui.json_patch import apply_patch, parse_pointer, set_at, value_at, without
from hypothesis import given
from hypothesis import strategies as st

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("document", "operations", "after"),
    [
        ({"foo": "bar"}, [("add", "/baz", "qux")], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [("add", "/foo/1", "qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [("remove", "/baz")], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [("replace", "/baz", "boo")], {"baz": "boo", "foo": "bar"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [("move", "/qux/thud", "/foo/waldo")],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            [("move", "/foo/3", "/foo/1")],
            {"foo": ["all", "cows", "eat", "grass"]},
        ),
        (
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [("test", "/baz", "qux"), ("test", "/foo/1", 2.0)],
            {"baz": "qux", "foo": ["a", 2, "c"]},
        ),
        ({"foo": "bar"}, [("add", "/child", {"a": {}})], {"foo": "bar", "child": {"a": {}}}),
        ({"/": 9, "~1": 10}, [("test", "/~01", 10), ("test", "/~1", 9)], {"/": 9, "~1": 10}),
        ({"foo": ["bar"]}, [("add", "/foo/-", ["abc"])], {"foo": ["bar", ["abc"]]}),
        ({"a": [1]}, [("copy", "/b", "/a"), ("add", "/b/-", 2)], {"a": [1], "b": [1, 2]}),
        ({"a": 1}, [("replace", "", [])], []),
        ({"a": 1}, [("remove", "")], None),
        ([1, 2], [("replace", "/1", 3)], [1, 3]),
        ({"": 1}, [("move", "/a", "/")], {"a": 1}),
        ({"a": 1}, [("move", "/a", "/a")], {"a": 1}),
    ],
)
def test_operations(document: Any, operations: list[Any], after: Any) -> None:  # noqa: ANN401
    before = repr(document)
    patch = [
        {"op": op, "path": path, "from" if op in ("move", "copy") else "value": rest[0]}
        if rest
        else {"op": op, "path": path}
        for op, path, *rest in operations
    ]
    assert apply_patch(document, patch) == after
    assert repr(document) == before


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("x", "a patch is a list of operations"),
        ([1], "operation 1 of the patch: an operation is an object"),
        ([{"op": "grow", "path": ""}], "Unknown operation 'grow'"),
        ([{"op": [], "path": ""}], "Operation's op must be a string"),
        ([{"op": "add", "path": "/a"}], "at '/a': The operation does not contain a 'value' member"),
        ([{"op": "add", "path": "a", "value": 1}], "at 'a': Location must start with /"),
        ([{"op": "add", "path": "/~2", "value": 1}], "Found invalid escape ~2"),
        ([{"op": "add", "path": 7, "value": 1}], "Invalid 'path'"),
        ([{"op": "add", "path": "/x/y", "value": 1}], "at '/x/y': member 'x' not found$"),
        (
            [{"op": "add", "path": "/n/y", "value": 1}],
            "at '/n/y': Document '<class 'int'>' does not support indexing",
        ),
        ([{"op": "add", "path": "/l/3", "value": 1}], "at '/l/3': can't insert outside of list"),
        ([{"op": "add", "path": "/l/01", "value": 1}], "'01' is not a valid sequence index"),
        ([{"op": "add", "path": "/l/9999999999", "value": 1}], "can't insert outside of list"),
        ([{"op": "remove", "path": "/l/-"}], "invalid array index '-'"),
        ([{"op": "replace", "path": "/x", "value": 1}], "can't replace a non-existent object 'x'"),
        (
            [{"op": "move", "from": "/d", "path": "/d/e"}],
            "Cannot move values into their own children",
        ),
        ([{"op": "copy", "path": "/d"}], "The operation does not contain a 'from' member"),
        (
            [{"op": "test", "path": "/n", "value": True}],
            "at '/n': the document holds another value",
        ),
        ([{"op": "test", "path": "/n"}], "The operation does not contain a 'value' member"),
        ([{"op": "add", "path": "/n", "value": 2}, {"op": "test"}], "operation 2 of the patch"),
    ],
)
def test_what_does_not_fit_changes_nothing(patch: Any, why: str) -> None:  # noqa: ANN401
    document: Any = {"n": 1, "l": [1, 2], "d": {"e": 1}}
    with pytest.raises(InvalidInput, match=why.replace("[", r"\[")):
        apply_patch(document, patch)
    assert document == {"n": 1, "l": [1, 2], "d": {"e": 1}}


@pytest.mark.parametrize("pointer", ["a", "/~2", "/a~", 7, None, ["a"]])
def test_what_is_no_pointer_is_refused(pointer: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidInput, match="is not a JSON Pointer"):
        parse_pointer(pointer)


def test_an_error_is_one_short_line_however_large_the_document() -> None:
    patch: Any = [{"op": "add", "path": "/a\nb" * 500, "value": 1}]
    with pytest.raises(InvalidInput) as refused:
        apply_patch({"x": "y" * 5000}, patch)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_copies_of_copies_do_not_fill_the_memory() -> None:
    double = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(40)]
    with pytest.raises(InvalidInput, match="it makes the document larger than"):
        apply_patch({"a": "x" * 1000}, double)


@given(st.dictionaries(st.text(max_size=3), values, max_size=3), st.text(max_size=3), values)
def test_what_was_put_somewhere_is_found_there(document: Any, key: str, value: Any) -> None:  # noqa: ANN401
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    changed = apply_patch(document, [{"op": "add", "path": path, "value": value}])
    tokens = parse_pointer(path)
    assert value_at(changed, tokens) == value
    assert set_at(without(changed, tokens), tokens, value) == changed
    assert without(changed, tokens) == {k: v for k, v in document.items() if k != key}


def test_a_place_that_is_not_there_is_made() -> None:
    assert set_at(None, ["a", "b"], 1) == {"a": {"b": 1}}
    assert value_at({"a": 1}, ["a", "b"]) is None
    assert value_at({"a": [1]}, ["a", "-"]) is None
    assert without({"a": 1}, ["b"]) == {"a": 1}
