"""Calls written as text: whatever they contain, they are parsed and never evaluated."""

from __future__ import annotations

import json

import pytest
from duolog.interop.importers.cogym.sessions import ActionCall, Signatures, parse_call, unquoted
from hypothesis import given
from hypothesis import strategies as st

SIGNATURES: Signatures = {
    "SAY": [["message"]],
    "FLY": [["origin", "destination", "date"]],
    "FAR": [["origins", "destinations", "mode"], ["origins", "destinations"]],
    "ASK": [["id", "pending"]],
    "END": [[]],
}


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("END()", "END", {}),
        ("  END()  ", "END", {}),
        ("SAY(message=Hi, budget=5, ok?)", "SAY", {"message": "Hi, budget=5, ok?"}),
        ('SAY(message="a (b) c)")', "SAY", {"message": "a (b) c)"}),
        ("SAY(message='line 1\\nline 2')", "SAY", {"message": "line 1\nline 2"}),
        ("SAY(message=line 1\nline 2 ))", "SAY", {"message": "line 1\nline 2 )"}),
        ("SAY(message=)", "SAY", {"message": ""}),
        (
            'FLY(origin=A, destination=B, C, date="2022-03-08")',
            "FLY",
            {"origin": "A", "destination": "B, C", "date": "2022-03-08"},
        ),
        (
            "FLY(origin=x, destination=y, destination=B, date=d)",
            "FLY",
            {"origin": "x, destination=y", "destination": "B", "date": "d"},
        ),
        ("FAR(origins=A, destinations=B)", "FAR", {"origins": "A", "destinations": "B"}),
        (
            "FAR(origins=A, destinations=B, mode=walking)",
            "FAR",
            {"origins": "A", "destinations": "B", "mode": "walking"},
        ),
        ('ASK(id=1, pending=EDIT(text="z"))', "ASK", {"id": "1", "pending": 'EDIT(text="z")'}),
        ('EDIT(content="x")', "EDIT", {"content": "x"}),
        (
            "ADD(paper=\"a, b=c\", tags=['x, y=1', z], note=it's (so), all=1)",
            "ADD",
            {"paper": "a, b=c", "tags": "['x, y=1', z]", "note": "it's (so)", "all": "1"},
        ),
        ("ADD(note=don't, all=1)", "ADD", {"note": "don't", "all": "1"}),
        ('ADD(note="open, all=1)', "ADD", {"note": '"open', "all": "1"}),
    ],
)
def test_a_call(text: str, name: str, arguments: dict[str, str]) -> None:
    call = parse_call(text, SIGNATURES)
    assert (call.name, call.arguments, call.readable) == (name, arguments, True)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", ""),
        ("just words", ""),
        ("EDIT(Day 1)", "EDIT"),
        ("EDIT(text=1", "EDIT"),
        ("EDIT(a=1, a=2)", "EDIT"),
        ("FLY(origin=A)x", "FLY"),
        ("I will not call END() yet", "END"),
        ("Action\nSAY(message=hello)", "SAY"),
        ("END(now)", "END"),
    ],
)
def test_what_is_no_whole_call_is_not_readable(text: str, name: str) -> None:
    call = parse_call(text, SIGNATURES)
    assert (call.name, call.readable) == (name, False)


def test_a_call_amid_prose_still_has_its_values() -> None:
    call = parse_call("Thought: so be it.\nSAY(message=hello)", SIGNATURES)
    assert call == ActionCall("SAY", {"message": "hello"}, readable=False)


def test_nothing_is_evaluated() -> None:
    text = "RUN(code=__import__('os').system('exit 1'), times={1: [2]})"
    call = parse_call(text, {})
    assert call.arguments == {"code": "__import__('os').system('exit 1')", "times": "{1: [2]}"}


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("  'Houston' ", "Houston"),
        ('"', '"'),
        ('"a" and "b"', 'a" and "b'),
        ("it's", "it's"),
        (r"a\tb\"c\'", "a\tb\"c'"),
        (r"a\\nb", r"a\nb"),
        (r"caf\u00e9 \x41", "café A"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d alone", "\ufffd alone"),
        ("C:\\d", "C:\\d"),
    ],
)
def test_what_a_value_means(value: str, meant: str) -> None:
    assert unquoted(value) == meant


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    for signatures in (None, SIGNATURES):
        call = parse_call(text, signatures or {})
        json.dumps(call.arguments).encode()


@given(st.text(alphabet="ab\"'(),=\\ \n[]{}X_", max_size=60))
def test_any_text_of_what_matters_has_an_answer(text: str) -> None:
    for wrapped in (f"X({text})", f"ADD(a={text}, b=1)", text):
        call = parse_call(wrapped, SIGNATURES)
        json.dumps(call.arguments).encode()


NAMES = st.sampled_from(["a", "b_1", "city", "Text"])
VALUES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters='"\\'))


@given(st.sampled_from(["GO", "Go_2", "x"]), st.dictionaries(NAMES, VALUES))
def test_quoted_values_come_back(name: str, values: dict[str, str]) -> None:
    written = ", ".join(f'{key}="{value}"' for key, value in values.items())
    call = parse_call(f"{name}({written})", {})
    assert call.readable
    assert call.arguments == {key: value.strip() for key, value in values.items()}


@given(VALUES)
def test_a_known_parameter_takes_all_there_is(value: str) -> None:
    call = parse_call(f"SAY(message={value})", SIGNATURES)
    assert (call.readable, call.values) == (True, {"message": value})
