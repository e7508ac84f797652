"""The code on the pages type-checks unchanged, under ``mypy --strict``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from documents import page_files, snippets

ROOT = Path(__file__).parents[1]
UNTYPED = {
    "experiments": "its task knows the shape of its JSON data",
    "statistics": "pandas and statsmodels have no types here",
    "write-a-store": "its methods leave out types, to be short",
    "write-a-task": "its task knows the shape of its JSON data",
}
"""Pages whose programs are not checked, and why."""

CALLBACKS = """\
import duolog
from duolog.engine.events import MessageSent
from duolog.engine.records import Record
from duolog.scoring.trajectory.updates import AnyUpdate, UtilityUpdated


def said(record: Record) -> str:
    event = record.event
    return event.text if isinstance(event, MessageSent) else ""


def on_update(update: AnyUpdate) -> None:
    match update:
        case UtilityUpdated(utility=utility):
            print(utility)
        case _:
            print(update.round)


def watch(log: duolog.Log, sync: duolog.SyncLog) -> None:
    log.watch(on_update=on_update).start()
    sync.watch(on_update=on_update)
"""


@pytest.mark.late
@pytest.mark.slow
def test_pages_type_check_as_they_are_written(tmp_path: Path) -> None:
    written = {"callbacks.py": CALLBACKS}
    for page in page_files(ROOT):
        for snippet in snippets(page.read_text(encoding="utf-8")):
            if snippet.language != "python" or snippet.not_run or page.stem in UNTYPED:
                continue
            first = snippet.text.splitlines()[0].removeprefix("# ")
            named = f"{page.stem}_{snippet.line}.py".replace("-", "_")
            written[first if first.endswith(".py") else named] = snippet.text
    for name, text in written.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), *sorted(written)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
