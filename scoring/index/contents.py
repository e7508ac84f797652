"""Searches what sessions say: messages, actions, outputs, approvals, comments.

A text of each session is kept in the log's store, which searches it: SQLite by FTS5, PostgreSQL by its
text search. A search first makes the texts of sessions that are new or have grown, so appending costs
nothing more. If the log cannot be written, the texts are made and searched in this process.

A text holds what every viewer of a log may see: no private parts of openings, later profiles, notes,
dropped drafts, or replies of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

import anyio
import anyio.to_thread

from ...engine.errors import CodecError, InvalidInput
from ...engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    CommentAdded,
    FeedbackGiven,
    MessageSent,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TagAdded,
)
from ...engine.log.contract import EventLog
from ...engine.log.searched import Phrases, Searchable, SessionText, found_in, phrases_in
from ...engine.records import Record

__all__ = ("TEXT_VERSION", "ContentSearch", "Found", "TextFold", "search_contents", "snippet")

TEXT_VERSION: Final = 1
"""Version of the fold from records to texts. Raise it if the same records give other texts."""

_PART: Final = 100_000  # characters that are searched together
_BATCH: Final = 50  # sessions that are kept at once
_AROUND: Final = 50  # characters of a snippet before and after a find
_SPACE: Final = re.compile(r"\s+")
_UNFIT: Final = re.compile("[\x00\ud800-\udfff]")  # characters that not every store can hold


class Found(NamedTuple):
    """The result of a search.

    Attributes:
        sessions: the sessions in which it was found.
        left: how many sessions could not be searched in the time that there was.
    """

    sessions: frozenset[str]
    left: int = 0


@final
class TextFold:
    """Folds the records of a session into its text. A line that repeats an earlier one is left out, so
    that versions of an output do not repeat it.

    Args:
        session: session id.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._lines: dict[str, None] = {}
        self._position = 0

    def feed(self, record: Record) -> None:
        """Takes the next record; a damaged one adds nothing."""
        self._position = record.position
        try:
            event = record.event
        except CodecError:
            return
        for text in _texts(event):
            for line in text.splitlines():
                if clean := _UNFIT.sub(" ", line).strip():
                    self._lines[clean] = None

    @property
    def text(self) -> SessionText:
        """The text so far."""
        parts: list[str] = []
        waiting: list[str] = []
        size = 0
        for line in self._lines:
            for at in range(0, len(line), _PART):
                piece = line[at : at + _PART]
                if size + len(piece) > _PART and waiting:
                    parts.append("\n".join(waiting))
                    waiting, size = [], 0
                waiting.append(piece)
                size += len(piece)
        parts.append("\n".join(waiting))
        return SessionText(self._session, TEXT_VERSION, self._position, tuple(parts))


@final
class ContentSearch:
    """Searches the contents of a log, and keeps what it needs for that up to date.

    Args:
        log: the log.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._lock = anyio.Lock()
        self._own: dict[str, SessionText] = {}  # texts that the log does not keep

    async def update(self, progress: Callable[[int], object] | None = None) -> None:
        """Makes the texts of sessions that are new or have grown. If it is cancelled, finished batches are kept.

        Args:
            progress: called with the number of sessions read so far.

        Raises:
            LogError: the log cannot be read.
        """
        async with self._lock:
            waiting: list[SessionText] = []
            for count, session in enumerate(await self._outdated(), start=1):
                fold = TextFold(session)
                async for record in self._log.read_all(session=session):
                    fold.feed(record)
                waiting.append(fold.text)
                if len(waiting) == _BATCH:
                    await self._keep(waiting)
                    waiting = []
                if progress is not None:
                    progress(count)
            await self._keep(waiting)

    async def _outdated(self) -> list[str]:
        """The sessions without a current text; texts of erased sessions are dropped here."""
        there = {one.session: one async for one in self._log.sessions()}
        for name in [*self._own]:
            if name not in there or there[name].state == "forgotten":
                del self._own[name]
        if isinstance(self._log, Searchable):
            unread = await self._log.unread_texts(TEXT_VERSION)
        else:
            unread = [name for name, one in there.items() if one.state != "forgotten"]
        return [
            name
            for name in unread
            if name in there
            and (name not in self._own or self._own[name].position < there[name].position)
        ]

    async def _keep(self, texts: Sequence[SessionText]) -> None:
        if not texts:
            return
        kept = await self._log.keep_texts(texts) if isinstance(self._log, Searchable) else 0
        if kept:
            for one in texts:
                self._own.pop(one.session, None)
        else:
            self._own |= {one.session: one for one in texts}

    async def find(self, text: str, *, patience: float | None = None) -> Found:
        """The sessions in which all words of a text occur, as of now.

        Args:
            text: words, and words in a row within double quotes. A word is found at the beginning of a
                longer one, too.
            patience: seconds for texts of sessions that are new; None for as long as it takes.

        Raises:
            InvalidInput: there is no word in the text.
            LogError: the log cannot be read.
        """
        phrases = _phrases(text)
        left = 0
        if patience is None:
            await self.update()
        else:
            with anyio.move_on_after(patience) as scope:
                await self.update()
            if scope.cancelled_caught:
                left = len(await self._outdated())
        found: set[str] = set()
        if isinstance(self._log, Searchable):
            found.update(await self._log.search_texts(phrases, TEXT_VERSION))
        if self._own:
            found -= self._own.keys()
            found |= await anyio.to_thread.run_sync(_search, dict(self._own), phrases)
        return Found(frozenset(found), left)

    async def snippets(self, text: str, sessions: Sequence[str]) -> Mapping[str, str]:
        """The text around the first match in each of some sessions.

        Raises:
            InvalidInput: there is no word in the text.
            LogError: the log cannot be read.
        """
        phrases = _phrases(text)
        found: dict[str, str] = {}
        parts: list[tuple[str, str]] = []
        if isinstance(self._log, Searchable) and sessions:
            parts += await self._log.found_texts(phrases, TEXT_VERSION, sessions)
        for session in sessions:
            own = self._own.get(session)
            parts += [(session, part) for part in (() if own is None else own.parts)]
        for session, part in parts:
            if session not in found and (shown := snippet(part, phrases)):
                found[session] = shown
        return found


async def search_contents(
    log: EventLog, text: str, *, progress: Callable[[int], object] | None = None
) -> tuple[ContentSearch, Found]:
    """Searches a log once, whole.

    Raises:
        InvalidInput: there is no word in the text.
        LogError: the log cannot be read.
    """
    _phrases(text)
    search = ContentSearch(log)
    await search.update(progress)
    return search, await search.find(text)


def snippet(text: str, phrases: Phrases) -> str:
    """A line with the text around the first match of the first phrase; empty without a match."""
    between = r"[\W_]+"
    found = re.search(
        rf"(?<![^\W_]){between.join(map(re.escape, phrases[0]))}", text, re.IGNORECASE
    )
    if found is None:
        return ""
    begin, end = max(found.start() - _AROUND, 0), min(found.end() + _AROUND, len(text))
    shown = _SPACE.sub(" ", text[begin:end]).strip()
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def _phrases(text: str) -> Phrases:
    phrases = phrases_in(text)
    if not phrases:
        raise InvalidInput(f"a search needs a word of letters or digits, got {text[:80]!r}")
    return phrases


def _search(texts: Mapping[str, SessionText], phrases: Phrases) -> set[str]:
    return {
        name for name, one in texts.items() if any(found_in(part, phrases) for part in one.parts)
    }


def _texts(event: object) -> Iterator[str]:
    """The texts of an event that every viewer may see."""
    match event:
        case MessageSent(text=text) | CommentAdded(text=text):
            yield text
        case SessionOpened(request=request):
            yield request or ""
        case ActionTaken(name=name, arguments=arguments, raw=raw):
            yield name
            yield from _strings(arguments)
            yield raw or ""
        case ActionResolved(observation=observation, error=error):
            yield from _strings(observation)
            yield error or ""
        case SnapshotTaken(content=content):
            yield from _strings(content)
        case ApprovalAsked(question=question, arguments=arguments):
            yield question
            yield from _strings(arguments)
        case ApprovalGiven(comment=comment) | FeedbackGiven(comment=comment):
            yield comment
        case ProgressRated(explanation=text):
            yield text
        case SessionClosed(detail=detail):
            yield detail
        case ActorFailed(error=error):
            yield error
        case TagAdded(tag=tag):
            yield tag


def _strings(value: JSON) -> Iterator[str]:
    """The texts and numbers in a JSON value, with the keys of its objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield key
            yield from _strings(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _strings(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
