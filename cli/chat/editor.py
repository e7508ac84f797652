"""A text in the person's own editor."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import anyio

__all__ = ("edit_text",)


async def edit_text(text: str) -> str | None:
    """The text as edited in the person's editor; None if no editor is set or it failed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return None
    with tempfile.TemporaryDirectory(prefix="duolog-") as directory:
        path = Path(directory) / "output.txt"
        path.write_text(text, encoding="utf-8")
        command = f'{editor} "$1"'
        process = await anyio.run_process(
            ["sh", "-c", command, "sh", str(path)],
            check=False,
            stdin=sys.__stdin__,
            stdout=sys.__stderr__,
            stderr=sys.__stderr__,
        )
        return path.read_text(encoding="utf-8") if process.returncode == 0 else None
