"""The beginning of a JSON file, however it is cut off; and its pieces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput
from duolog.interop.importers.json_files import decode, lines_of, pieces_of
from duolog.interop.importers.json_sniff import Shape, shape_of, shape_of_text
from hypothesis import given
from hypothesis import strategies as st

OBJECT = {"id": 1, "messages": [{"role": "user", "content": [{"type": "text"}]}, {"other": 1}]}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (json.dumps(OBJECT), "object"),
        (json.dumps(OBJECT, indent=2) + "\n", "object"),
        (json.dumps([OBJECT, {"second": {"a": 1}}]), "array"),
        (json.dumps(OBJECT) + "\n" + json.dumps({"second": 1}), "lines"),
        ("\ufeff" + json.dumps(OBJECT), "object"),
    ],
)
def test_the_form_and_the_first_keys(text: str, form: str) -> None:
    found = shape_of_text(text.encode())
    inner = {"messages": frozenset({"role", "content"})}
    assert found == Shape(form=form, keys=frozenset({"id", "messages"}), inner=inner)  # type: ignore[arg-type]


def test_keys_of_the_first_object_in_each_value() -> None:
    text = json.dumps({"a": {"x": {"y": 1}, "z": 2}, "b": [[{"p": 1}], {"q": 1}], "c": 3})
    found = shape_of_text(text.encode())
    assert found is not None
    assert found.inner == {"a": frozenset({"x", "z"}), "b": frozenset({"p"})}


@pytest.mark.parametrize("text", ["", " \n", "text", "3", '"a"', "{]", "\x00\x01"])
def test_what_is_no_json(text: str) -> None:
    assert shape_of_text(text.encode()) is None


def test_braces_in_texts_are_no_braces() -> None:
    found = shape_of_text(json.dumps({"a": 'x"}{[', "b": "\\"}).encode())
    assert found == Shape(form="object", keys=frozenset({"a", "b"}))


@given(st.integers(0, 200))
def test_a_head_may_end_anywhere(cut: int) -> None:
    whole = json.dumps([{"role": 'a "quoted" {one}', "content": {"k": [1, "ü"]}, "last": True}])
    found = shape_of_text(whole.encode()[:cut])
    assert (found is None) is (cut == 0)
    assert found is None or found.keys <= {"role", "content", "last"}


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=4), JSONS, min_size=1))
def test_all_keys_of_an_object_are_found(value: dict[str, object]) -> None:
    for text in (json.dumps(value), json.dumps([value], indent=1), json.dumps([[], value])):
        found = shape_of_text(text.encode())
        assert found is not None
        assert found.keys == set(value) or text.startswith("[[")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read .*none: No such file"):
        shape_of(tmp_path / "none")
    with pytest.raises(InvalidInput, match=r"cannot read .*: Is a directory"):
        list(lines_of(tmp_path))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('[\n{"a": NaN},\n{"a": "\\ud800"}]', [{"a": None}, {"a": "?"}]),
    ],
)
def test_pieces(text: str, values: list[dict[str, object]], tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(text, encoding="utf-8")
    pieces = list(pieces_of(path))
    assert [decode(piece.data, dict[str, object]) for piece in pieces] == values


def test_lines_have_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text('{"a": 1}\n\n  \n{"a": 2}\n{"a', encoding="utf-8")
    assert [piece.number for piece in lines_of(path)] == [1, 4, 5]
    *_, last = lines_of(path)
    assert last.where == f"{path}, line 5"
    with pytest.raises(InvalidInput, match="Input data was truncated"):
        decode(last.data, dict[str, object])


def test_a_name_that_is_no_utf8_makes_no_json() -> None:
    assert shape_of_text(b'{"na\xe5me": 1, "b": 2}') is None
