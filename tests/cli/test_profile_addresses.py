"""``duolog profile`` with agents that are programs or servers: each is played as it is, and told apart."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.experiments.profile.playing import plan_profile, profile
from duolog.experiments.profile.suite import Suite
from openai_server import Answer, Body, OpenAIServer

pytestmark = [pytest.mark.usefixtures("plain"), pytest.mark.slow]

FLATTERER = """
import json, sys
said = ["You are right.", "Well put.", "I see it as you do.", "Exactly.", "A great idea.", "Yes, indeed."]
turns = 0
for line in sys.stdin:
    turn = json.loads(line)
    last = next((one["role"] for one in reversed(turn["news"]) if one["kind"] == "MessageSent"), None)
    actions = []
    if turn["output"] is None:
        actions = [{"name": "submit", "arguments": {"content": "{}"}}]
    elif last == "human":
        actions = [{"name": "message", "arguments": {"text": said[turns % len(said)]}}]
        turns += 1
    print(json.dumps({"turn": turn["turn"], "actions": actions}), flush=True)
"""

CODER = """
import asyncio
from pathlib import Path

import acp


class Coder:
    def on_connect(self, client):
        self.client = client
        self.turns = 0

    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, **_):
        self.folder = Path(cwd)
        return acp.NewSessionResponse(session_id="s")

    async def prompt(self, prompt, **_):
        self.turns += 1
        output = next(self.folder.glob("output*"))
        if self.turns == 1:
            await self.client.write_text_file(session_id="s", path=str(output), content="{}")
        words = f"Could you do part {self.turns} yourself?"
        await self.client.session_update(session_id="s", update=acp.update_agent_message_text(words))
        return acp.PromptResponse(stop_reason="end_turn")


asyncio.run(acp.run_agent(Coder()))
"""


SMALL = Suite(
    name="small",
    tasks=("finance",),
    users=("proactive",),
    scaffolds=("one-stage",),
    problems=2,
    rounds=8,
    seed=50,
)


def check(address: str, log: Path, kind: str) -> None:
    """Profiles an address on a small suite, twice: the second time all of it is in the log."""
    plan = plan_profile(address, suite=SMALL, log=str(log))
    found, done = anyio.run(profile, plan)
    name = address.partition("=")[0]
    assert {agent: one.kind for agent, one in found.diagnoses.items()} == {name: kind}
    assert (found.played, found.failed, done.left) == (found.planned, 0, 0) == (4, 0, 0)
    assert found.recommendation is not None
    choices = {one.name for one in found.recommendation.choices}
    assert choices == {name, "human-alone"}  # an address is not played alone
    assert anyio.run(profile, plan)[0] == found


def test_a_program(tmp_path: Path) -> None:
    (tmp_path / "flatterer.py").write_text(FLATTERER, encoding="utf-8")
    address = f"mine=exec:{sys.executable} -E -S {tmp_path / 'flatterer.py'}"
    check(address, tmp_path / "p.db", "plateau")


def test_a_coding_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("acp")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "coder.py").write_text(CODER, encoding="utf-8")
    address = f"coder=acp:{sys.executable} {tmp_path / 'coder.py'}"
    check(address, tmp_path / "p.db", "shifted")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def answer(body: Body) -> Answer:
        if '"submit"' in json.dumps(body["messages"]):
            return Answer(
                tool_calls=[("message", '{"text": "You are absolutely right."}'), ("wait", "{}")]
            )
        return Answer(tool_calls=[("submit", '{"content": {}}')])

    with OpenAIServer(answer=answer).running() as server:
        yield server


def test_a_server(server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"served=openai:{server.url}#m-1"
    check(address, tmp_path / "p.db", "loop")


def test_an_agent_that_fails_is_not_taken_for_one_that_does_nothing(
    server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda body: Answer(tool_calls=[("submit", '{"content": 3}')])
    told = ["profile", f"served=openai:{server.url}#m-1", "--tasks", "finance", "--bootstrap", "20"]
    assert main([*told, "--log", str(tmp_path / "p.db"), "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "12 of 24 sessions failed." in shown
    assert "Nothing is known of it with served" in shown
    assert "unclear;" not in shown
