"""Records commands in a terminal, and pages of the workbench, as pictures for the documentation.

``python -m duolog.benchmarks.recordings`` runs the commands in a new folder and writes
``docs/images/terminal-NAME.svg``, in which the lines appear one after another. If a browser is
installed, it also writes the screenshots of the workbench. Nothing in a picture is typed by hand.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from duolog.benchmarks.browsers import BROWSER, NO_BROWSER
from rich.console import Console
from rich.text import Text

__all__ = ("RECORDINGS", "SCREENSHOTS", "main")

_DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
IMAGES: Final = _DOCS / "images"
_COLUMNS: Final = 100
_MOST: Final = 26  # lines of one command's output
_PAUSE, _LINE = 0.8, 0.04  # seconds between a command and its output, and between two lines
_DRAWN: Final = 3_000  # milliseconds until what was asked for is drawn
_FIRST_BLOCK: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Recording(NamedTuple):
    """The contents of a picture of the terminal.

    Attributes:
        shown: the commands, each with its output.
        before: commands that run first and are not shown.
        program: the name of a file that is written before.
        page: the page whose first block of Python the file holds.
    """

    shown: tuple[str, ...]
    before: tuple[str, ...] = ()
    program: str = ""
    page: str = ""


RECORDINGS: Final[Mapping[str, Recording]] = {
    "report": Recording(
        (
            "duolog run tutoring --agents one-stage,two-stage,adaptive --sessions 30 --log tutoring.db",
        )
    ),
    "show": Recording(
        ("duolog show trips.db travel-1-one-stage",),
        before=(
            "duolog run travel --agents one-stage --users proactive --sessions 3 --seed 7 --log trips.db",
        ),
    ),
    "telemetry": Recording(
        ("python support.py", "duolog show support.db conversation-1"),
        program="support.py",
        page="telemetry.md",
    ),
}

_LOG: Final = (
    "duolog run travel --agents one-stage,adaptive --patience 2 --seed 7 --log demo.db",
    "duolog fork demo.db travel-2-one-stage-proactive --at-round 3 --agent adaptive",
)
_ORIGIN: Final = "duolog sessions demo.db travel-2-one-stage-proactive --json"
SCREENSHOTS: Final[Mapping[str, str]] = {
    "workbench": "/session?id={session}",
    "workbench-sessions": "/sessions",
}
"""Pages of the workbench; ``session`` is the id of the session that is forked."""


def main() -> None:
    """Makes all pictures."""
    for name, recording in RECORDINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            _record(name, recording, Path(folder))
    if BROWSER is None:
        sys.exit(f"The screenshots need a browser: {NO_BROWSER}")
    with tempfile.TemporaryDirectory() as folder:
        _take_screenshots(BROWSER, Path(folder))


def _program(command: str) -> list[str]:
    words = shlex.split(command)
    return [sys.executable, *(["-P", "-m", *words] if words[0] == "duolog" else words[1:])]


def _run(command: str, folder: Path) -> str:
    done = subprocess.run(
        _program(command),
        check=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": str(_COLUMNS), "TZ": "UTC", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    return done.stdout


def _record(name: str, recording: Recording, folder: Path) -> None:
    if recording.program:
        page = (_DOCS / recording.page).read_text(encoding="utf-8")
        found = _FIRST_BLOCK.search(page)
        if found is None:
            sys.exit(f"{recording.page} has no block of Python")
        (folder / recording.program).write_text(found[1], encoding="utf-8")
    for command in recording.before:
        _run(command, folder)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_COLUMNS + 2, file=nowhere)
        delays: list[float] = []
        after = 0.0
        for command in recording.shown:
            delays.append(after)
            shown = command if len(command) <= _COLUMNS else command[: _COLUMNS - 6] + " ..."
            console.print(Text(f"$ {shown}", style="bold green"))
            lines = _run(command, folder).rstrip().splitlines()
            lines = [*lines[:_MOST], "..."] if len(lines) > _MOST else lines
            for place, line in enumerate(lines):
                console.print(Text(line), no_wrap=True)
                delays.append(after + _PAUSE + place * _LINE)
            after = delays[-1] + _PAUSE
        picture = console.export_svg(title="duolog", unique_id=name)
    (IMAGES / f"terminal-{name}.svg").write_text(_played(picture, delays), encoding="utf-8")


def _played(picture: str, delays: list[float]) -> str:
    """The picture, with lines that appear after their delays, unless the reader wants no motion."""
    # The font comes from the reader's machine: a page loads nothing from elsewhere.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    picture = re.sub(r"<!-- Generated with .*? -->", "", picture)
    motion = (
        "@keyframes appear { from { opacity: 0 } }\n"
        "@media (prefers-reduced-motion: no-preference) { text[style] { animation: appear .01s both } }\n"
    )
    picture = picture.replace("</style>", f"{motion}</style>", 1)
    return re.sub(
        r'(<text )([^>]*clip-path="url\(#[\w-]+-line-(\d+)\)")',
        lambda found: (
            f'{found[1]}style="animation-delay: {delays[min(int(found[3]), len(delays) - 1)]:.2f}s" '
            f"{found[2]}"
        ),
        picture,
    )


def _take_screenshots(browser: str, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    for command in _LOG:
        _run(command, folder)
    session = json.loads(_run(_ORIGIN, folder))[0]["session"]
    server = subprocess.Popen(
        _program("duolog workbench demo.db --port 0"),
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        link = next(found[0] for line in server.stderr if (found := re.search(r"http\S+", line)))
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page(viewport={"width": 1280, "height": 760})
            page.goto(link)
            page.wait_for_url("**/sessions*")
            for name, path in SCREENSHOTS.items():
                page.goto(link.split("/#")[0] + path.format(session=session))
                page.wait_for_timeout(_DRAWN)
                if (changes := page.get_by_role("button", name="Changes", exact=True)).count():
                    changes.click()
                    page.wait_for_timeout(_DRAWN)
                page.screenshot(path=IMAGES / f"{name}.png")
            chromium.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
