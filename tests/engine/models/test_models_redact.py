"""No key, and nothing that looks like one, gets into a text that is kept."""

from __future__ import annotations

import pytest
from duolog.engine.models.litellm.redact import scrub
from hypothesis import given
from hypothesis import strategies as st

ENVIRON = {
    "OPENAI_API_KEY": "abcdefgh-very-secret",
    "MY_DB_PASSWORD": "hunter2hunter2",
    "SHORT_TOKEN": "abc",
    "HOME": "/home/somebody",
}


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(sorted(ENVIRON)))
def test_secrets_of_the_environment_never_stay(before: str, after: str, name: str) -> None:
    text = scrub(before + ENVIRON[name] + after, ENVIRON)
    secret = len(ENVIRON[name]) >= 8 and name != "HOME"
    assert (ENVIRON[name] not in text) or not secret


def test_what_is_no_secret_stays() -> None:
    text = "Rate limit reached for gpt-4o in organization org-1 on tokens per min: /home/somebody"
    assert scrub(text, ENVIRON) == text


def test_a_secret_within_another_goes_too() -> None:
    environ = {"A_KEY": "12345678", "B_KEY": "12345678-longer"}
    assert scrub("12345678-longer 12345678", environ) == "[removed] [removed]"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("Incorrect key: sk-proj-abcDEF123456.", "Incorrect key: [removed]"),
        ("Incorrect key: sk-ab***********yz, see", "Incorrect key: [removed], see"),
        ("key AIzaSyA1234567890abc is bad", "key [removed] is bad"),
        ("Authorization: Bearer eyJhbGciOi.xyz-_", "Authorization: Bearer [removed]"),
        ("{'x-api-key': 'deadbeefdeadbeef'}", "{'x-api-key': [removed]'}"),
        ("api_key=deadbeef&x=1", "api_key=[removed]"),
        ("https://me:secret@host/v1", "https://[removed]@host/v1"),
        ("gsk_1234567890abcdef", "[removed]"),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, scrubbed: str) -> None:
    assert scrub(text, {}) == scrubbed
