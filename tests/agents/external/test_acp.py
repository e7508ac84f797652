"""An agent that speaks the Agent Client Protocol takes a seat: a real one, over real pipes."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import SessionInterrupted
from duolog.engine.events import ApprovalAsked, MessageSent
from duolog.engine.records import TRACE, Record
from external_agents import LONG, SECRET, calls, record, session

pytestmark = pytest.mark.slow

CODER = Path(__file__).parents[2] / "support" / "acp_coder.py"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current directory, and where directories of sessions are made."""
    pytest.importorskip("acp")
    monkeypatch.chdir(tmp_path)
    Path("tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


def address(mode: str = "") -> str:
    return f"acp:{sys.executable} {CODER} {mode}"


def trace(records: list[Record]) -> list[Record]:
    return [one for one in records if one.stream == TRACE]


def test_a_coding_agent_asks_is_allowed_and_writes_the_output() -> None:
    made = session(address())
    result, records = anyio.run(record, made)
    assert (result.reason, result.utility) == ("finished", 1.0)
    kinds = [one.kind for one in trace(records)]
    assert [kinds.count(kind) for kind in ("ApprovalAsked", "ApprovalGiven", "SnapshotTaken")] == [
        1,
        1,
        1,
    ]
    asked = next(one.event for one in records if isinstance(one.event, ApprovalAsked))
    assert asked.question == "May I do this: toast the bread?"
    assert (asked.action, asked.arguments) == ("execute", {"bread": 2})
    prompts = Path("prompts").read_text("utf-8")
    assert SECRET not in prompts
    assert prompts.count("# The task") == 1  # a known task is not repeated
    assert "is not in the directory of the session" in prompts
    assert "Done." in [one.event.text for one in records if isinstance(one.event, MessageSent)]
    assert "user says: Butter, please." in prompts
    assert list(Path("tmp").iterdir()) == []

    Path("prompts").unlink()
    whole = trace(records)
    cut = next(i for i, one in enumerate(whole) if one.kind == "ApprovalGiven") + 1
    resumed = anyio.run(record, made, whole[:cut])[1]
    held = [one.body for one in whole[:cut]]
    assert [one.body for one in trace(resumed)][:cut] == held
    prompts = Path("prompts").read_text("utf-8")
    assert prompts.count("# The task") == 1  # it was restarted, and told the current state
    assert "You had asked for leave: allowed: go on." in prompts


def test_an_agent_that_says_its_environment_has_no_secrets_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = "DUOLOG_TOKEN PGPASSWORD OPENAI_API_KEY DUOLOG_LOG".split()
    for name in (*secrets, "MY_KEY"):
        monkeypatch.setenv(name, f"the-{name}")
    _, records = anyio.run(record, session(address("env"), passed=("MY_KEY",)))
    said = " ".join(one.event.text for one in records if isinstance(one.event, MessageSent))
    assert "MY_KEY=the-MY_KEY" in said
    assert "PATH=" in said
    assert not [name for name in secrets if name in said]
    assert not [
        one for one in records if any(name.encode() in (one.body or b"") for name in secrets)
    ]


def test_an_agent_that_dies_is_started_again() -> None:
    result, records = anyio.run(record, session(address("die")))
    assert result.reason == "finished"
    assert "ended with exit code 7" in str(calls(records)[0].error)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("echo Welcome", "acp:echo Welcome writes 'Welcome', which is not JSON-RPC"),
        ("sleep 600", "no whole answer from 'acp-sleep' within 0.3 s"),
        (
            """sh -c 'read line; echo "{\\"id\\": 1, \\"error\\": {\\"code\\": -32000}}"'""",
            "log in with",
        ),
        ("""sh -c 'read line; echo "{\\"id\\": 1, \\"result\\": 5}"'""", "ended with exit code 0"),
    ],
)
def test_an_agent_that_cannot_be_used_is_one_clear_line(command: str, says: str) -> None:
    timeout = 0.3 if "within" in says else LONG
    with pytest.raises(SessionInterrupted, match=says):
        anyio.run(record, session(f"acp:{command}", timeout=timeout))
    assert list(Path("tmp").iterdir()) == []
