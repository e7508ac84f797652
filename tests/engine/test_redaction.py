"""No key, and nothing that looks like one, gets into a text that is kept."""

from __future__ import annotations

import pytest
from duolog.engine import redaction
from duolog.engine.events import JSON
from duolog.engine.redaction import REMOVED, is_secret_name, redact, redact_json, secrets_in
from hypothesis import given
from hypothesis import strategies as st
from step_counter import count_lines

ENVIRON = {
    "OPENAI_API_KEY": "abcdefgh-very-secret",
    "MY_DB_PASSWORD": "hunter2hunter2",
    "SHORT_TOKEN": "abc",
    "HOME": "/home/somebody",
}


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(sorted(ENVIRON)))
def test_secrets_of_the_environment_never_stay(before: str, after: str, name: str) -> None:
    text = redact(before + ENVIRON[name] + after, environ=ENVIRON)
    secret = len(ENVIRON[name]) >= 8 and name != "HOME"
    assert (ENVIRON[name] not in text) or not secret


def test_what_is_no_secret_stays() -> None:
    text = "Rate limit reached for gpt-4o in organization org-1 on tokens per min: /home/somebody"
    assert redact(text, environ=ENVIRON) == text


def test_a_secret_within_another_goes_too() -> None:
    environ = {"A_KEY": "12345678", "B_KEY": "12345678-longer"}
    assert redact("12345678-longer 12345678", environ=environ) == "[removed] [removed]"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("Incorrect key: sk-proj-abcDEF123456.", "Incorrect key: [removed]"),
        ("Incorrect key: sk-ab***********yz, see", "Incorrect key: [removed], see"),
        ("key AIzaSyA1234567890abc is bad", "key [removed] is bad"),
        ("Authorization: Bearer eyJhbGciOi.xyz-_", "Authorization: Bearer [removed]"),
        ("{'x-api-key': 'deadbeefdeadbeef'}", "{'x-api-key': '[removed]'}"),
        ("api_key=deadbeef&x=1", "api_key=[removed]"),
        ("https://me:secret@host/v1", "https://[removed]@host/v1"),
        ("gsk_1234567890abcdef", "[removed]"),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, scrubbed: str) -> None:
    assert redact(text, environ={}) == scrubbed


_JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"

# Messages of providers, proxies and clients, each with its secret part.
FORMS = [
    ("Incorrect API key provided: {}. You can find", "sk-proj-Zz9kQ1v7T3BlbkFJx0aB"),
    ("invalid x-api-key {}", "sk-ant-api03-q8Zr_5T2k9Lm-wYxAA"),
    ("Incorrect API key provided: {}", "abcd1234****************wxyz"),
    ("Authorization: Basic {}", "dXNlcjpodW50ZXIyaHVudGVyMg=="),
    ("{{'Authorization': 'Basic {}'}}", "dXNlcjpwYXNz"),
    ("authorization: bearer {}", "0a1b2c3d4e5f6071"),
    ("headers: {{'Authorization': 'Token {}'}}", "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b"),
    ("Proxy-Authorization: Basic {}", "YWxhZGRpbjpvcGVuc2VzYW1l"),
    ("Authorization: AWS4-HMAC-SHA256 Credential={}, x", "AKIAIOSFODNN7EXAMPLE/20260101/us-east-1"),
    (
        "AWS4-HMAC-SHA256 SignedHeaders=host, Signature={}",
        "fe5f80f77d5fa3beca038a248ff027d0445342fe",
    ),
    ("The AWS Access Key Id {} does not exist", "AKIAIOSFODNN7EXAMPLE"),
    ("token of {} has expired", "ASIAJEXAMPLEXEG2JICEA"),
    ("credentials AKIAIOSFODNN7EXAMPLE:{}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("aws_secret_access_key={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ('"SecretAccessKey": "{}"', "wJalrXUtnFEMIK7MDENG"),
    ("aws_session_token = '{}'", "FwoGZXIvYXdzEBYaDG5vdGhpbmc"),
    ("403 for GET https://h/v1beta/models?key={}&alt=sse", "c0ffee00c0ffee"),
    ("GET https://h/v1?api-version=2&subscription-key={}", "a0b1c2d3e4f50617"),
    ("https://a.blob.core.windows.net/c?sv=1&sig={}", "Zm9vYmFyYmF6cXV4%3D"),
    ("https://s3/o?X-Amz-Signature={}", "5d672d79c15b13162d9279b0855cfba6789a8edb"),
    ("https://me:{}@proxy.example/v1 refused", "hunter2"),
    ("redis://:{}@cache:6379/0", "hunter2"),
    ("bad token {}", _JWT),
    ("jwt malformed: {}", _JWT[:50]),
    ("remote: {} is not allowed", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("remote: {}", "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqR"),
    ("{} may not", "glpat-aBcDeFgHiJkLmNoPqRsT"),
    ("invalid_auth: {}", "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOHcBrzzqy"),
    ("app {}", "xapp-1-A0B1C2-123-abcdef0123"),
    ("post to {}", "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX"),
    ("API key not valid: {}", "AIzaSyA1234567890abcdefghijklmnopqrstu"),
    ("Request had invalid credentials: {}", "ya29.a0AfH6SMBx-1234567"),
    ("model hub: {}", "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"),
    ("{} is revoked", "gsk_1234567890abcdef1234"),
    ("{}", "xai-abcDEF1234567890"),
    ("{}", "nvapi-abc1230DEF456-ghi"),
    ("{}", "pplx-0123456789abcdef0123"),
    ("databricks {}", "dapi0123456789abcdef0123456789abcdef"),
    ('{{"client_secret": "{}"}}', "3Xa8Q~abcdefghij"),
    ("azure_ad_token: {}", "opaque-and-long-enough"),
    ('password="{}"', "correct horse battery staple"),
    ("Server=tcp:db;Pwd={};Encrypt=yes", "s3cr3tpassw0rd"),
    ("AccountKey={};EndpointSuffix=x", "bWljcm9zb2Z0YXp1cmU="),
    ("Set-Cookie: {}", "session=abcdef0123456789; Path=/"),
    ("npm {}", "npm_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"),
    ("{}", "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"),
    (
        "{}",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
    ),
    ("{}", "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0B"),
    ("api_key: str = {}", "deadbeefdeadbeef"),
    ("apiKey={}", "deadbeefdeadbeef"),
]


@pytest.mark.parametrize(("text", "secret"), FORMS, ids=range(len(FORMS)))
def test_the_forms_in_which_providers_repeat_secrets(text: str, secret: str) -> None:
    told = redact(text.format(secret), environ={})
    assert "[removed]" in told
    for part in (secret, *secret.split()):
        assert len(part) < 6 or part not in told


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000",
        "max_tokens: 4096 is too large; prompt_tokens=8000, completion_tokens: 12",
        "This model's maximum context length is 8192 tokens, key: messages[0]",
        "claude-3-5-sonnet-20241022 does not exist; try task-two-of-three or key-value stores",
        "basic plans have no bearer of costs; token counting is off",
        "https://api.openai.com/v1/chat/completions?api-version=2024-06-01 gave 500",
        "request req_011CQxYz failed at 2026-11-22T06:42:00Z, trace 4bf92f3577b34da6a3ce929d0e0e4736",
        "**Note**: the authorization failed",
    ],
)
def test_what_only_sounds_like_a_secret_stays(text: str) -> None:
    assert redact(text, environ={}) == text


def test_the_secrets_of_a_call_are_known_exactly() -> None:
    call = {
        "model": "m",
        "api_key": "plain words",
        "max_tokens": 100,
        "litellm_params": {"api_base": "http://me:pa%24s@h/v1?key=q1w2e3&x=visible"},
        "extra_headers": {"Authorization": "Basic Zm9vOmJhcg==", "X-Trace": "visible"},
        "aws_secret_access_key": "a/b+c=d8",
        "messages": [{"role": "user", "content": "my token is visible"}],
    }
    secrets = secrets_in(call)
    assert set(secrets) >= {"plain words", "pa$s", "q1w2e3", "Zm9vOmJhcg==", "a/b+c=d8"}
    said = "plain words, pa$s, pa%24s, q1w2e3 or Zm9vOmJhcg== or a%2Fb%2Bc%3Dd8; visible"
    told = redact(said, secrets, environ={})
    assert told == "[removed], [removed], [removed], [removed] or [removed] or [removed]; visible"


def test_a_short_secret_goes_as_a_word_and_a_shorter_one_stays() -> None:
    assert redact("the tiger of tigers", ["tiger", "of"], environ={}) == "the [removed] of tigers"


def test_values_lose_their_secrets_and_keep_their_form() -> None:
    value: JSON = {
        "headers": {"Authorization": "Basic x", "Accept": "text/html"},
        "tokens": 12,
        "token": None,
        "notes": ["use ghp_16C7e42F292c6912E7710c838347Ae17", "hello"],
    }
    assert redact_json(value) == {
        "headers": {"Authorization": "[removed]", "Accept": "text/html"},
        "tokens": 12,
        "token": None,
        "notes": ["use [removed]", "hello"],
    }


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("api_key", True),
        ("X-Api-Key", True),
        ("secretAccessKey", True),
        ("azure_ad_token", True),
        ("OPENAI_API_KEY", True),
        ("max_tokens", False),
        ("key", False),
        ("token_count", False),
        ("author", False),
    ],
)
def test_names_that_tell_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) == secret


@pytest.mark.parametrize(
    "piece", ["a", "a_", "://", "api_key", "eyJ", "Bearer ", "-----BEGIN ", "*"]
)
def test_reading_a_long_text_costs_little(piece: str) -> None:
    redact(piece * (20_000 // len(piece)), environ={})  # a quadratic pattern would take minutes


@pytest.mark.parametrize(
    "marker", [marker for markers, _ in redaction._MARKERS for marker in markers]
)
def test_a_text_with_the_beginning_of_a_form_is_always_looked_at(marker: str) -> None:
    behind = "ann:secret@host" if marker == "://" else ""
    for text in (
        f"{marker}{behind}",
        f"some_text-A: {marker}{behind} x",
        f"\\n{marker}{behind}\\n",
    ):
        assert redaction.may_hold_forms(text)
    assert not redaction.may_hold_forms(
        "def a_task(at: str) -> None:  # see https://host/a?b=c, AK 9."
    )


def test_a_value_of_many_texts_has_the_environment_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(20):
        monkeypatch.setenv(f"SERVICE_{number}_API_KEY", f"one-of-twenty-keys-{number}")

    def steps(count: int) -> float:
        lines, redacted = count_lines(redact_json, ["one-of-twenty-keys-7"] * count)
        assert redacted == [REMOVED] * count
        return lines / count

    assert steps(100) < 0.5 * steps(1)
