"""Tool calls of one session, from their first mention to their outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

from ...engine.events import JSON
from ...telemetry.receipt import Receipt
from ..json_parts import items_at, mapping_at, text_at
from .content import text_of_block
from .files import Change, FileTexts, file_of
from .voice import Voice

__all__ = ("ToolCalls", "arguments_of", "name_of")

_OVER: Final = frozenset({"completed", "failed"})
_KEPT: Final = ("title", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta")
_OTHER: Final = "other"


@final
class _Call:
    """The current state of a call."""

    def __init__(self) -> None:
        self.fields: dict[str, JSON] = {}
        self.taken: Receipt | None = None
        self.over = False


@final
class ToolCalls:
    """Follows calls, and records each as an action, its outcome, and the files that it changed.

    An action is recorded when it is no longer pending, since its arguments may come in pieces until
    then; or when the agent asks for leave to take it, or moves to something else.

    Args:
        voice: where they are recorded.
        files: what is known of files.

    Attributes:
        snapshot: the last file that the agent changed; None for none.
    """

    def __init__(self, voice: Voice, files: FileTexts) -> None:
        self._voice = voice
        self._files = files
        self._calls: dict[str, _Call] = {}
        self._pending: list[_Call] = []
        self._terminals: dict[str, str] = {}
        self.snapshot: Receipt | None = None

    def update(self, update: JSON, time: float) -> None:
        """Records an update of a call: its first, or a later one."""
        call = self.merge(update)
        status = text_at(call.fields, "status")
        if call.over:
            if status == "completed" and items_at(update, "content"):
                self._submit(items_at(update, "content"), time)
            return
        if status not in ("", "pending"):
            self._take(call, time)
        if status in _OVER:
            self._resolve(call, time)

    def merge(self, update: JSON) -> _Call:
        """The call that an update is about, with the update applied."""
        id = text_at(update, "toolCallId")
        call = self._calls.get(id)
        if call is None:
            call = self._calls[id] = _Call()
            self._pending.append(call)
        if isinstance(update, Mapping):
            given = {name: update[name] for name in _KEPT if update.get(name) is not None}
            call.fields.update(given)
        return call

    def begin(self, update: JSON, time: float) -> Mapping[str, JSON]:
        """Records a call as taken, since its agent asks for leave; gives what is known of it."""
        call = self.merge(update)
        self._take(call, time)
        return call.fields

    def begin_all(self, time: float) -> None:
        """Records all calls that are pending as taken."""
        pending, self._pending = self._pending, []
        for call in pending:
            self._take(call, time)

    def end(self, reason: str, time: float) -> None:
        """Records all calls that are in flight as failed.

        Args:
            reason: why.
            time: when.
        """
        for call in self._calls.values():
            if not call.over:
                self._take(call, time)
                call.over = True
                if call.taken is not None:
                    self._voice.resolved(call.taken, None, reason, time)

    def printed(self, terminal: str, output: str) -> None:
        """Notes what a terminal shows, which a call may refer to."""
        self._terminals[terminal] = output

    def wrote(self, change: Change | None, time: float) -> None:
        """Records an edit of the agent; nothing if there is none."""
        if change is not None:
            self.snapshot = self._voice.wrote(*file_of(change), time)

    def _take(self, call: _Call, time: float) -> None:
        if call.taken is None:
            call.taken = self._voice.took(name_of(call.fields), arguments_of(call.fields), time)

    def _resolve(self, call: _Call, time: float) -> None:
        call.over = True
        failed = text_at(call.fields, "status") == "failed"
        content = items_at(call.fields, "content")
        result = call.fields.get("rawOutput")
        if result is None:
            result = "\n".join(self._texts(content)) or None
        if call.taken is not None:
            error = None
            if failed:
                error, result = result if isinstance(result, str) else "it failed", None
            self._voice.resolved(call.taken, result, error, time)
        if not failed:
            self._submit(content, time)
        call.fields = {"status": "failed" if failed else "completed"}  # the rest is not needed

    def _texts(self, content: Sequence[JSON]) -> Iterator[str]:
        for item in content:
            kind = text_at(item, "type")
            if kind == "content":
                yield text_of_block(mapping_at(item, "content"))
            elif kind == "terminal":
                yield self._terminals.pop(text_at(item, "terminalId"), "")

    def _submit(self, content: Sequence[JSON], time: float) -> None:
        for item in content:
            if text_at(item, "type") != "diff" or not isinstance(item, Mapping):
                continue
            path, old, new = text_at(item, "path"), item.get("oldText"), item.get("newText")
            if path and isinstance(new, str):
                before = old if isinstance(old, str) else None
                self.wrote(self._files.edit(path, before, new, time), time)


def name_of(call: Mapping[str, JSON]) -> str:
    """The kind of a call, such as ``read``, ``edit`` or ``execute``."""
    return text_at(call, "kind") or _OTHER


def arguments_of(call: Mapping[str, JSON]) -> dict[str, JSON]:
    """The known facts about a call before it runs: title, input and locations."""
    paths = [path for one in items_at(call, "locations") if (path := text_at(one, "path"))]
    tool = text_at(mapping_at(mapping_at(call, "_meta"), "claudeCode"), "toolName")
    said: dict[str, JSON] = {
        "title": text_at(call, "title"),
        "tool": tool,
        "input": call.get("rawInput"),
        "paths": paths,
    }
    return {name: value for name, value in said.items() if value not in (None, "", [], {})}
