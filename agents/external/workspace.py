"""The directory that a coding agent works in, with the shared output as a file."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread

from ...engine.errors import InvalidInput, ModelBadReply
from ...engine.session.view import View
from ...engine.task import Brief
from ...engine.text import text_of

__all__ = ("Workspace", "output_file")

_MOST: Final = 8 * 1024 * 1024
"""Bytes of a file that are read."""


def output_file(brief: Brief) -> str:
    """The name of the shared output's file."""
    if brief.schema.get("type") != "string":
        return "output.json"
    return "output.md" if brief.media_type == "text/markdown" else "output.txt"


@final
class Workspace:
    """A separate directory for one run of an agent.

    Args:
        path: the directory.
        brief: the brief of the task.
    """

    def __init__(self, path: Path, brief: Brief) -> None:
        self.path = path
        self._file = anyio.Path(path / output_file(brief))
        self._put = ""

    @classmethod
    async def make(cls, brief: Brief) -> Workspace:
        """Makes the directory."""
        made = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="duolog-"))
        return cls(Path(await anyio.Path(made).resolve()), brief)

    async def remove(self) -> None:
        """Removes the directory, and all that is in it."""
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(self.path, ignore_errors=True))

    async def put_output(self, view: View) -> None:
        """Writes the current shared output into its file."""
        self._put = text_of(view.snapshot.content) if view.snapshot is not None else ""
        await self._file.write_text(self._put, encoding="utf-8")

    async def changed_output(self) -> str | None:
        """The file's content, if it differs from what Duolog wrote there.

        Raises:
            ModelBadReply: it is too large.
        """
        if not await self._file.is_file():
            return None
        text = await self._read(self._file)
        return text if text.strip() and text != self._put else None

    async def read(self, path: str, line: int | None, limit: int | None) -> str:
        """Reads a file, or some lines of it.

        Args:
            path: absolute, or in the directory.
            line: the first one, from 1; None for the beginning.
            limit: how many; None for all.

        Raises:
            InvalidInput: it is not in the directory, or cannot be read.
        """
        text = await self._read(await self._inside(path))
        if line is None and limit is None:
            return text
        first = max((line or 1) - 1, 0)
        lines = text.splitlines(keepends=True)
        return "".join(lines[first : None if limit is None else first + limit])

    async def write(self, path: str, content: str) -> None:
        """Writes a file.

        Raises:
            InvalidInput: it is not in the directory, or cannot be written.
        """
        file = await self._inside(path)
        try:
            await file.parent.mkdir(parents=True, exist_ok=True)
            await file.write_text(content, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None

    async def _inside(self, path: str) -> anyio.Path:
        try:
            file = await anyio.Path(self.path / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise InvalidInput(f"{path!r} is not a path: {error}") from None
        if not file.is_relative_to(self.path):
            raise InvalidInput(f"{path} is not in the directory of the session")
        return file

    async def _read(self, file: anyio.Path) -> str:
        try:
            if (await file.stat()).st_size > _MOST:
                raise ModelBadReply(f"{file.name} has more than {_MOST // 2**20} MB")
            return (await file.read_bytes()).decode("utf-8", "replace")
        except OSError as error:
            raise InvalidInput(f"{file.name} cannot be read: {error.strerror}") from None
