"""``duolog workbench`` as a process: its messages, access, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from duolog.cli import main
from duolog.engine.log.open import open_log
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one session."""
    asyncio.run(make(tmp_path / "log.db"))
    return tmp_path / "log.db"


async def make(path: Path) -> None:
    script = RecordWriter("s")
    script.opened()
    script.human("hello")
    async with open_log(str(path), create=True) as log:
        await put_records(log, script.records)


@pytest.mark.slow
def test_it_serves_those_who_have_its_link_until_it_is_ended(log: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "duolog", "workbench", str(log), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "DUOLOG_TOKEN": "a-token-of-these-tests"},
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.fullmatch(
        rf"the workbench of {re.escape(str(log))} is at (http://127\.0\.0\.1:\d+)/"
        r"#token=a-token-of-these-tests \(end it with Ctrl\+C\)\n",
        said,
    )
    assert found, said
    base = found[1]
    request = urllib.request.Request(
        f"{base}/enter",
        json.dumps({"token": "a-token-of-these-tests"}).encode(),
        {"Content-Type": "application/json", "Origin": base},
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        assert json.load(answer)["role"] == "operator"
    listed = urllib.request.Request(f"{base}/sessions", headers={"Cookie": cookie})
    with urllib.request.urlopen(listed, timeout=300) as page:
        assert 'data-session="s"' in page.read().decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.slow
def test_it_fails_where_its_log_is_gone(log: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "duolog", "workbench", str(log), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr:
        assert "the workbench of" in process.stderr.readline()
        log.rename(log.with_name("moved.db"))
        assert process.wait(300) == 2
        assert "was removed or moved" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing.db"], "missing.db"),
        (["log.db", "--host", "0.0.0.0"], "can be reached by others"),
        (["new.db", "--play", "nope"], "unknown task 'nope'"),
        (["log.db", "--play", "travel", "--agent", "nope"], "unknown agent 'nope'"),
        (["log.db", "--alert", "state=wrong"], "unknown state 'wrong'"),
        (
            ["log.db", "--alert", "tau", "--webhook", "ftp://x"],
            "a webhook must be an http or https URL",
        ),
    ],
)
def test_what_it_cannot_do_it_says_in_a_line(
    arguments: list[str],
    complaint: str,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(log.parent)
    monkeypatch.delenv("DUOLOG_TOKEN", raising=False)
    assert main(["workbench", *arguments, "--port", "0"]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
    assert not (log.parent / "new.db").exists()
