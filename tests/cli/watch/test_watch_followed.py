"""The screen of ``duolog watch`` while sessions of other programs are followed, or were imported."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import pytest
from duolog.cli.watch.panes import TranscriptPane
from duolog.engine.log.open import MemoryLog
from duolog.interop.importers.claude_code.sessions import ClaudeCodeImporter
from duolog.interop.importers.codex import CodexImporter
from duolog.interop.importers.datasets import LmsysImporter, ShareGptImporter
from duolog.interop.importers.follow import follow_foreign
from duolog.interop.importers.inspect_logs import InspectImporter
from duolog.interop.importers.protocol import Importer
from duolog.interop.importers.run import import_foreign
from duolog.interop.importers.traces.langfuse import LangfuseImporter
from duolog.interop.importers.traces.otlp import OtlpImporter
from watch_screen import LARGE, SMALL, Screen, screen

pytestmark = pytest.mark.slow

Add = Callable[[Sequence[bytes]], Awaitable[None]]


async def followed(
    path: Path,
    importer: Importer,
    size: tuple[int, int],
    look: Callable[[Screen, Add], Awaitable[None]],
) -> None:
    """Shows a log while a file is followed into it, and ends that when it was looked at."""

    async def add(lines: Sequence[bytes]) -> None:
        async with await anyio.Path(path).open("ab") as file:
            await file.write(b"".join(lines))

    async with MemoryLog() as log, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: follow_foreign(log, path.parent, importer, every=0.005))
        async with screen(log, size) as shown:
            await look(shown, add)
        tasks.cancel_scope.cancel()


async def test_a_session_of_claude_code_is_shown_as_it_goes(tmp_path: Path, root: Path) -> None:
    lines = (root / "docs/samples/logs/claude-code.jsonl").read_bytes().splitlines(keepends=True)
    typed = next(n for n, line in enumerate(lines) if b"Set the train" in line)
    asked = next(n for n, line in enumerate(lines) if b"Shall I commit it?" in line)
    again = json.loads(lines[typed])
    again |= {"uuid": "again", "timestamp": "2026-03-02T09:01:00.000Z"}
    again["message"] = {"role": "user", "content": "Set it to the first one."}

    async def look(shown: Screen, add: Add) -> None:
        assert "no sessions yet" in shown.sessions
        await add(lines[: typed + 1])
        await shown.shows(lambda: "Set the train to the later one." in shown.transcript)
        await add(lines[typed + 1 : asked + 1])
        await shown.shows(lambda: "asks for approval: Shall I commit it?" in shown.transcript)
        assert "edits trains.py (+1 −1 lines)" in shown.transcript
        assert "open" in shown.sessions
        await add(lines[asked + 1 :])
        await shown.shows(lambda: "Committed." in shown.transcript)
        assert "approves" in shown.transcript
        assert "Round 2" in shown.transcript
        subtitle = shown.app.query_one(TranscriptPane).border_subtitle
        assert subtitle == "open · 2 rounds · no utility, not evaluated: no utility scorer ran"
        await add([json.dumps(again).encode() + b"\n"])
        await shown.shows(lambda: "claude-1-line-2" in shown.sessions)
        assert shown.watched.selected == "claude-1"
        assert "Committed." in shown.transcript  # the rewound session stays as it was
        await shown.press("up")
        await shown.shows(lambda: "Set it to the first one." in shown.transcript)
        assert "Committed." not in shown.transcript

    await followed(tmp_path / "s.jsonl", ClaudeCodeImporter(), SMALL, look)


async def test_a_session_of_codex_is_shown_as_it_goes(tmp_path: Path, root: Path) -> None:
    lines = (root / "docs/samples/logs/codex.jsonl").read_bytes().splitlines(keepends=True)
    called = next(n for n, line in enumerate(lines) if b"function_call" in line)

    async def look(shown: Screen, add: Add) -> None:
        await add(lines[: called + 1])
        await shown.shows(lambda: "shell(command=" in shown.transcript)
        assert "failed" not in shown.transcript
        await add(lines[called + 1 :])
        await shown.shows(lambda: "The timetable is in times.txt." in shown.transcript)
        assert "failed: cat: times.txt" in shown.transcript
        assert "writes times.txt (1 line)" in shown.transcript

    await followed(tmp_path / "rollout.jsonl", CodexImporter(), LARGE, look)


@pytest.mark.parametrize(
    ("file", "importer", "shows", "outcome"),
    [
        (
            "inspect.json",
            InspectImporter(),
            "match scores round 1: 1.000",
            "ended · 1 round · utility 1",
        ),
        (
            "lmsys.jsonl",
            LmsysImporter(),
            "I cannot look up trains.",
            "ended · 1 round · no utility",
        ),
        (
            "sharegpt.json",
            ShareGptImporter(),
            "search_trains(to=Lyon)",
            "ended · 1 round · no utility",
        ),
        ("otlp.json", OtlpImporter(), "→ search_trains 4: failed: timeout", "open · 1 round"),
        ("langfuse.json", LangfuseImporter(), "feedback on 7: thumbs up: Quick!", "open · 1 round"),
    ],
)
async def test_what_was_imported_is_shown(
    file: str, importer: Importer, shows: str, outcome: str, root: Path
) -> None:
    async with MemoryLog() as log:
        await import_foreign(log, root / "docs/samples/logs" / file, importer)
        async with screen(log, SMALL) as shown:
            assert shows in shown.transcript
            subtitle = shown.app.query_one(TranscriptPane).border_subtitle
            assert str(subtitle).startswith(outcome)
            assert "nan" not in f"{shown.sessions}{shown.transcript}".lower()
