"""Draws what commands print in a terminal, as SVG pictures for the pages.

``python -m duolog.benchmarks.recordings`` runs the commands in a new folder and writes
``docs/images/terminal-NAME.svg``. Nothing in a picture is typed by hand.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

__all__ = ("RECORDINGS", "main")

IMAGES: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
_COLUMNS: Final = 100

RECORDINGS: Final = {
    "report": (
        "duolog run tutoring --agents one-stage,two-stage,adaptive --sessions 30 --log tutoring.db",
    ),
    "show": (
        "duolog run travel --agents one-stage --users proactive --sessions 3 --seed 7 --log trips.db",
        "duolog show trips.db travel-1-one-stage",
    ),
}
"""The commands of each picture; the last is shown, with at most ``_MOST`` lines of its output."""

_MOST: Final = 26


def main() -> None:
    """Draws all pictures."""
    for name, commands in RECORDINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                output = _run(command, Path(folder))
        _draw(name, commands[-1], output)


def _run(command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-m", *shlex.split(command)],
        check=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": str(_COLUMNS), "TZ": "UTC", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    return done.stdout


def _draw(name: str, command: str, output: str) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_COLUMNS + 2, file=nowhere)
        shown = command if len(command) <= _COLUMNS else command[: _COLUMNS - 6] + " ..."
        console.print(Text(f"$ {shown}", style="bold green"))
        lines = output.rstrip().splitlines()
        for line in lines[:_MOST]:
            console.print(Text(line), no_wrap=True)
        if len(lines) > _MOST:
            console.print(Text("..."))
        picture = console.export_svg(title="duolog", unique_id=name)
    # The font comes from the reader's machine: a page loads nothing from elsewhere.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    picture = re.sub(r"<!-- Generated with .*? -->", "", picture)
    (IMAGES / f"terminal-{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
