"""A log whose appends and reads can be held up, and appends made to fail, from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Self, cast

import anyio
from duolog.engine.log.contract import Advance, Store
from duolog.engine.records import TRACE, Draft, Record


class Gate:
    """Stands before a log; ``log`` is what it looks like from outside.

    Attributes:
        calls: appends that were tried.
    """

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._open = anyio.Event()
        self._open.set()
        self._readable = anyio.Event()
        self._readable.set()
        self._fails: Callable[[str, Sequence[Draft], str], Exception | None] = _never
        self.calls = 0

    @property
    def log(self) -> Store:
        """The log behind the gate."""
        return cast(Store, self)

    def shut(self) -> None:
        """Holds up all appends from now on."""
        self._open = anyio.Event()

    def open(self) -> None:
        """Lets them through."""
        self._open.set()

    def shut_reads(self) -> None:
        """Holds up all reads from now on, but for those that have begun."""
        self._readable = anyio.Event()

    def open_reads(self) -> None:
        """Lets them through."""
        self._readable.set()

    def fail(self, how: Callable[[str, Sequence[Draft], str], Exception | None]) -> None:
        """Raises what ``how`` gives for a session, drafts and stream, before anything is written."""
        self._fails = how

    def heal(self) -> None:
        """Fails no more."""
        self._fails = _never

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        self.calls += 1
        await self._open.wait()
        error = self._fails(session, drafts, stream)
        if error is not None:
            raise error
        return await self._inner.append(
            session,
            drafts,
            stream=stream,
            expected_version=expected_version,
            checkpoint=checkpoint,
        )

    async def read_all(
        self, *, after_position: int = 0, session: str | None = None
    ) -> AsyncIterator[Record]:
        await self._readable.wait()
        async for record in self._inner.read_all(after_position=after_position, session=session):
            yield record

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(None, None, None)


def _never(session: str, drafts: Sequence[Draft], stream: str) -> None:
    return None
