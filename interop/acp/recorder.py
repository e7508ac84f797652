"""The recorder: reads copies of what passed between an editor and an agent, and writes a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Final, final

from ...engine.errors import SessionNotFound
from ...engine.events import JSON
from ...engine.logger import get_logger
from ...engine.redaction import redact
from ...telemetry.receipt import Receipt
from ...telemetry.session import About, Recording
from ...telemetry.sync import SyncLog
from ..json_parts import items_at, mapping_at, text_at
from .connection import Connection, Opening
from .files import Directory, FileTexts
from .lines import Lines
from .session import AgentSession
from .voice import Voice
from .wire import AGENT, EDITOR, ENDED, LOST, unpack

__all__ = ("LogSessions", "record_copies")

_TASK: Final = "coding"


def record_copies(
    read: Callable[[int], bytes],
    log: SyncLog,
    command: Sequence[str],
    *,
    retention: bool = False,
    clean: bool = True,
) -> None:
    """Records what passes until the stream of copies ends.

    Args:
        read: gives as many bytes of the stream as it is asked for, see ``wire``.
        log: an open log.
        command: that started the agent.
        retention: whether to look at files at the next prompt, for what is kept of the edits.
        clean: remove secrets, also values under telling names and those of the environment.
    """
    connection = Connection(LogSessions(log, command, retention=retention, clean=clean))
    lines = {EDITOR: Lines(), AGENT: Lines()}
    skipped = 0
    ended = False
    time = 0.0
    for kind, time, data in unpack(read):
        if kind in lines:
            for line in lines[kind].feed(data):
                connection.read(kind, line, time)
        elif kind == LOST and data[0] in lines:
            lines[data[0]].lose()
        elif kind == ENDED:
            connection.end(int(data), time)
            ended = True
        if skipped < (now := sum(side.skipped for side in lines.values())):
            skipped = now
            get_logger("acp").warning(
                "a message was left out: it is too long or incomplete", skipped=skipped
            )
    if not ended:  # the proxy was killed, and the agent with it
        connection.end(0, time)


@final
class LogSessions:
    """Opens sessions of an agent in a log.

    The agent's ids get the prefix ``acp/``. An agent may give an id out again, in a later process:
    then the session gets a number as well. A session that the agent loads continues in place.

    Args:
        log: an open log.
        command: that started the agent.
        retention: whether files may be looked at.
        clean: remove secrets.
    """

    def __init__(
        self, log: SyncLog, command: Sequence[str], *, retention: bool = False, clean: bool = True
    ) -> None:
        self._clean = clean
        self._log = log
        self._command = command
        self._retention = retention

    def begin(self, opening: Opening) -> AgentSession:
        """A session, muted if the log holds it already."""
        name, known, earlier = self._name(opening)
        about = self._about(opening, earlier)

        def start() -> Recording[Receipt]:
            return self._log.session(name, **about)

        directory = Directory(opening.directories) if self._retention else None
        mode = text_at(mapping_at(opening.result, "modes"), "currentModeId")
        voice = Voice(start, clean=self._clean)
        session = AgentSession(voice, FileTexts(directory), model=about.get("model"), mode=mode)
        session.muted = known
        return session

    def _name(self, opening: Opening) -> tuple[str, bool, str | None]:
        """The id in the log; whether the log holds what is repeated; and the session before it."""
        base, number = f"acp/{opening.id}", 1
        found: str | None = None
        closed = False
        while True:
            name = base if number == 1 else f"{base}/{number}"
            try:
                closed = self._log.summary(name).state != "open"
            except SessionNotFound:
                break
            found, number = name, number + 1
        if opening.new or found is None:
            return name, False, None
        return (name, True, found) if closed else (found, True, None)

    def _about(self, opening: Opening, earlier: str | None) -> About:
        agent = opening.agent
        label = f"{agent.name} {agent.version}".strip() or PurePath(self._command[0]).name
        noted: dict[str, JSON] = {
            "session": opening.id,
            "command": redact(" ".join(self._command)),
            "directories": [one for one in opening.directories if one],
            "mode": text_at(mapping_at(opening.result, "modes"), "currentModeId"),
            "forked_from": opening.origin and f"acp/{opening.origin}",
            "continues": earlier,
        }
        return About(
            task=_TASK,
            instance=opening.id,
            agent=label,
            model=_model(opening.result),
            config={"acp": {name: value for name, value in noted.items() if value}},
        )


def _model(result: Mapping[str, JSON]) -> str | None:
    """The model that a new session says it uses."""
    for option in items_at(result, "configOptions"):
        if text_at(option, "category") == "model":
            return text_at(option, "currentValue") or None
    return text_at(mapping_at(result, "models"), "currentModelId") or None
