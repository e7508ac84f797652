"""``duolog oversight`` and ``report --oversight``: the same numbers, in every form, also as a log grows."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import duolog
import pytest
from duolog.cli import main

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "chats.db"
    with duolog.open_sync(f"sqlite:///{path}") as opened:
        for number, release in enumerate(("1", "2")):
            s = opened.session(f"chat-{number}", agent="v7", release=release, user="u1")
            s.human.says("Cancel order 48213.")
            asked = s.agent.asks("May I?")
            s.human.approves(asked, source="person", approved=not number)
            s.agent.acts("cancel", result="done")
            s.agent.says("Done. Anything else?")
            s.close()
    return str(path)


def test_it_prints_groups_by_any_label(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oversight", log, "--group-by", "release", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by"] == "release"
    assert [found["groups"][name]["approve_everything"] for name in "12"] == [1.0, 0.0]
    assert main(["oversight", log, "release=2"]) == 0
    assert "v7 (1)" in capsys.readouterr().out
    assert main(["oversight", log, "release=3"]) == 0
    assert "no session that meets this" in capsys.readouterr().err
    assert main(["oversight", log, "--group-by", "relase"]) == 2
    assert "no session has a label 'relase' to group by" in capsys.readouterr().err


def test_a_report_has_the_same_numbers(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oversight", log, "--group-by", "release", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["report", log, "--oversight", "--group-by", "release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main(["report", log, "--oversight", "--csv"]) == 0
    assert capsys.readouterr().out.startswith("agent,sessions,agent_turns,")
    assert main(["report", log, "--oversight", "--group-by", "agent,release"]) == 2
    assert "groups by one label" in capsys.readouterr().err
    assert main(["report", log, "--oversight", "--forks"]) == 2


def test_it_needs_events(tmp_path: Path, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    tables = str(tmp_path / "tables")
    assert main(["export", log, "--format", "parquet", "--output", tables]) == 0
    assert main(["report", tables, "--oversight"]) == 2
    assert "give the log itself" in capsys.readouterr().err


def test_it_follows_a_log(
    log: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def until_changed(seconds: float) -> None:
        """Instead of waiting: more is recorded, and then the user presses Ctrl+C."""
        if len(waits) == 1:
            raise KeyboardInterrupt
        waits.append(seconds)
        async with duolog.open(f"sqlite:///{log}") as opened:
            s = await opened.session("chat-2", release="3")
            await s.agent.says("Hello.", durable=True)

    waits: list[float] = []
    monkeypatch.setattr("duolog.scoring.oversight.anyio", SimpleNamespace(sleep=until_changed))
    assert main(["oversight", log, "--follow", "--group-by", "release", "--json"]) == 130
    before, after = json.JSONDecoder(), capsys.readouterr().out
    first, end = before.raw_decode(after)
    second, _ = before.raw_decode(after[end:].lstrip())
    assert list(first["groups"]) == ["1", "2"]
    assert list(second["groups"]) == ["1", "2", "3"]
