"""A cache of replies on disk: a request that was answered once is answered the same again."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, final

import anyio.to_thread
import msgspec

from ...budget import MESSAGE
from ...errors import InvalidInput
from ...events import ModelCalled
from ...log.contract import EventLog
from ...logger import get_logger
from ..protocol import ModelReply, ModelRequest, request_digest

__all__ = ("CachedReplies", "ResponseCache")


class _CachedReply(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a cache file; the request is included for human readers."""

    request: ModelRequest
    reply: ModelReply


_decode: Final = msgspec.json.Decoder(_CachedReply).decode


@final
class ResponseCache:
    """Replies by the digest of the whole request, a file each.

    It makes a model repeat itself, temperature or not, so it is for trying things out and off
    unless it is asked for. Its content is outside of any log: forgetting a session reaches it only
    through ``CachedReplies``. Several programs may share a directory.

    Args:
        directory: holds the files; created when it is first needed.

    Attributes:
        hits: requests that were found.
        misses: requests that were not.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.hits = 0
        self.misses = 0

    async def get(self, request: ModelRequest) -> ModelReply | None:
        """The reply to a request, marked as from the cache and free of cost; None if there is none.

        Raises:
            InvalidInput: the directory cannot be read.
        """
        path = self._path(request)
        entry = await anyio.to_thread.run_sync(self._read, path)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        return msgspec.structs.replace(entry.reply, cost=0.0, latency=0.0, from_cache=True)

    async def put(self, request: ModelRequest, reply: ModelReply) -> None:
        """Keeps a reply.

        Raises:
            InvalidInput: the directory cannot be written.
        """
        entry = _CachedReply(request=msgspec.structs.replace(request, asker=None), reply=reply)
        await anyio.to_thread.run_sync(self._write, self._path(request), msgspec.json.encode(entry))

    async def erase(self, digests: Collection[str]) -> int:
        """Erases the replies to requests with these digests, and returns how many there were.

        Raises:
            InvalidInput: the directory cannot be written.
        """
        return await anyio.to_thread.run_sync(self._erase, tuple(digests))

    def _path(self, request: ModelRequest) -> Path:
        return self._path_of(request_digest(request))

    def _path_of(self, digest: str) -> Path:
        return self._directory / digest[:2] / f"{digest[2:]}.json"

    def _read(self, path: Path) -> _CachedReply | None:
        """The content of a file; a damaged file counts as missing."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"cannot read the response cache: {error}") from error
        try:
            return MESSAGE.decoded(content, _decode)
        except InvalidInput as error:
            get_logger("models").warning(
                "response_cache_entry_unreadable", path=str(path), error=str(error)
            )
            return None

    def _erase(self, digests: Iterable[str]) -> int:
        erased = 0
        for digest in digests:
            if not digest.isalnum():  # a digest that a product made up, not the name of a file here
                continue
            try:
                self._path_of(digest).unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise InvalidInput(f"cannot erase from the response cache: {error}") from error
            erased += 1
        return erased

    def _write(self, path: Path, content: bytes) -> None:
        """Writes a file atomically, even if other processes write it at the same time."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent)
            try:
                with open(handle, "wb") as file:
                    file.write(content)
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                raise
        except OSError as error:
            raise InvalidInput(f"cannot write the response cache: {error}") from error


@final
class CachedReplies:
    """A ``Cache`` to be forgotten from: the replies in a response cache that a log's sessions got.

    A log records the digest of each request, and the cache keeps its reply under that digest. So this
    is to be read before the session is forgotten, since its digests are erased with it.

    Attributes:
        name: the directory of the cache.
        erased: how many replies were erased.
    """

    def __init__(self, directory: Path, requests: dict[str, set[str]]) -> None:
        self.name = str(directory)
        self.erased = 0
        self._cache = ResponseCache(directory)
        self._requests = requests

    @classmethod
    async def read(cls, log: EventLog, directory: Path) -> CachedReplies:
        """Reads which sessions of a log made which requests."""
        requests: defaultdict[str, set[str]] = defaultdict(set)
        async for record in log.read_all():
            event = record.event if record.kind == "ModelCalled" else None
            if isinstance(event, ModelCalled):
                requests[record.session].add(event.request)
        return cls(directory, dict(requests))

    async def forget(self, sessions: Sequence[str]) -> None:
        """Erases the replies to the requests of these sessions.

        Raises:
            InvalidInput: the directory cannot be written.
        """
        asked = {digest for session in sessions for digest in self._requests.get(session, ())}
        self.erased += await self._cache.erase(asked)
