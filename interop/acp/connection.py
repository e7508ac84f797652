"""One connection between an editor and an agent: its messages, matched and told apart by session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, final

import msgspec

from ...engine.budget import MESSAGE
from ...engine.errors import DuologError
from ...engine.events import JSON
from ...engine.logger import get_logger
from ...engine.plugins import PluginCall
from ..json_parts import items_at, mapping_at, text_at
from .session import AgentSession
from .wire import AGENT, EDITOR

__all__ = ("Agent", "Connection", "Opening", "Sessions")

_REQUESTS: Final = 10_000  # requests without an answer that are remembered
_SESSION: Final = "sessionId"
_MADE: Final = frozenset({"session/new", "session/fork"})
_TAKEN_UP: Final = frozenset({"session/load", "session/resume"})


class Agent(msgspec.Struct, frozen=True):
    """How an agent introduces itself when a connection begins."""

    name: str = ""
    version: str = ""
    resumable: bool = False


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The known facts about a session when it begins.

    Attributes:
        id: the agent's own.
        agent: what it says of itself.
        directories: where the agent works.
        result: the agent's answer to the request.
        new: whether it has just been made, so that no earlier session can be meant.
        origin: the agent's id of the session that it was forked from.
    """

    id: str
    agent: Agent
    directories: tuple[str, ...] = ()
    result: Mapping[str, JSON] = {}
    new: bool = False
    origin: str = ""


class Sessions(Protocol):
    """Begins or continues sessions."""

    def begin(self, opening: Opening) -> AgentSession:
        """The session, muted if the log holds it already."""
        ...


class _Request(NamedTuple):
    method: str
    params: Mapping[str, JSON]


@final
class Connection:
    """Reads the messages of both sides, in the order in which they passed.

    Whatever a message holds, reading it never raises: it is counted and logged.

    Args:
        sessions: begins sessions.

    Attributes:
        unread: how many messages could not be read.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._agent = Agent()
        self._open: dict[str, AgentSession] = {}
        self._requests: OrderedDict[tuple[int, JSON], _Request] = OrderedDict()
        self.unread = 0

    def read(self, side: int, line: bytes, time: float) -> None:
        """Reads a line.

        Args:
            side: who wrote it.
            line: one message, or an array of them.
            time: UTC epoch seconds.
        """
        try:
            with PluginCall("a message"):
                MESSAGE.check_json(line)
                found: JSON = msgspec.json.decode(line)
                for message in found if isinstance(found, list) else [found]:
                    self._message(side, message, time)
        except Exception as error:  # noqa: BLE001  (logged, and counted)
            self._complain(error)

    def end(self, status: int, time: float) -> None:
        """The agent has ended.

        Args:
            status: its exit status, negative for a signal.
            time: UTC epoch seconds.
        """
        error = None
        if status > 0:
            error = f"the agent ended with exit code {status}"
        elif status < 0:
            error = f"the agent was ended by signal {-status}"
        for session in self._open.values():
            try:
                with PluginCall("the end of a session"):
                    session.end(error, time, close=not self._agent.resumable)
            except Exception as failure:  # noqa: BLE001  (logged, and counted)
                self._complain(failure)

    def _complain(self, error: Exception) -> None:
        self.unread += 1
        if self.unread & (self.unread - 1) == 0:
            expected = isinstance(error, DuologError | msgspec.DecodeError | RecursionError)
            get_logger("acp").warning(
                "a message could not be recorded",
                unread=self.unread,
                error=f"{type(error).__name__}: {error}",
                exc_info=None if expected else error,
            )

    def _message(self, side: int, message: JSON, time: float) -> None:
        method, id = text_at(message, "method"), None
        if isinstance(message, Mapping):
            id = message.get("id")
        if isinstance(id, list | dict):
            return
        if not method:
            self._answer(side, id, message, time)
            return
        params = mapping_at(message, "params")
        if isinstance(message, Mapping) and "id" in message:
            self._requests[side, id] = _Request(method, params)
            if len(self._requests) > _REQUESTS:
                self._requests.popitem(last=False)
        if side == EDITOR:
            self._from_editor(method, params, time)
        else:
            self._from_agent(method, id, params, time)

    def _from_editor(self, method: str, params: Mapping[str, JSON], time: float) -> None:
        if method == "session/prompt":
            self._session(params).prompt(params, time)
        elif method == "session/cancel":
            self._session(params).cancel()
        elif method == "session/set_mode":
            self._session(params).choosing(text_at(params, "modeId"))
        elif method in _TAKEN_UP and (id := text_at(params, _SESSION)):
            self._open[id] = self._sessions.begin(self._opening(id, params, {}))

    def _from_agent(self, method: str, id: JSON, params: Mapping[str, JSON], time: float) -> None:
        if method == "session/update":
            self._session(params).update(mapping_at(params, "update"), time)
        elif method == "session/request_permission":
            self._session(params).asked(id, params, time)
        elif method == "elicitation/create" and text_at(params, _SESSION):
            self._session(params).elicited(id, params, time)

    def _answer(self, side: int, id: JSON, message: JSON, time: float) -> None:
        asker = AGENT if side == EDITOR else EDITOR
        request = self._requests.pop((asker, id), None)
        if request is None or not isinstance(message, Mapping):
            return
        result, error = message.get("result"), message.get("error")
        if asker == EDITOR:
            self._answer_of_agent(request, result, error, time)
        elif error is None:
            self._answer_of_editor(request, id, result, time)

    def _answer_of_agent(self, request: _Request, result: JSON, error: JSON, time: float) -> None:
        method, params = request
        if method == "session/prompt":
            self._session(params).ended_turn(result, error, time)
        elif method in _TAKEN_UP:
            self._session(params).muted = False
        elif error is not None:
            return
        elif method == "initialize":
            self._agent = _agent(mapping_at({"result": result}, "result"))
        elif method in _MADE and (id := text_at(result, _SESSION)):
            opening = self._opening(id, params, mapping_at({"result": result}, "result"))
            origin = text_at(params, _SESSION)
            opening = msgspec.structs.replace(opening, new=True, origin=origin)
            self._open[id] = self._sessions.begin(opening)
        elif method == "session/set_mode":
            self._session(params).choose("mode", params.get("modeId"), time)
        elif method == "session/set_config_option":
            chosen = text_at(params, "configId")
            self._session(params).choose(chosen, params.get("value"), time)
        elif method == "session/close":
            self._session(params).end(None, time, close=not self._agent.resumable)
            self._open.pop(text_at(params, _SESSION), None)

    def _answer_of_editor(self, request: _Request, id: JSON, result: JSON, time: float) -> None:
        method, params = request
        if not text_at(params, _SESSION):
            return
        session = self._session(params)
        path = text_at(params, "path")
        if method == "session/request_permission":
            session.answered(id, params, result, time)
        elif method == "elicitation/create":
            session.replied(id, result, time)
        elif method == "fs/write_text_file":
            session.wrote_file(path, text_at(params, "content"), time)
        elif method == "fs/read_text_file":
            if params.get("line") is None and params.get("limit") is None:
                session.read_file(path, text_at(result, "content"))
        elif method == "terminal/output":
            session.printed(text_at(params, "terminalId"), text_at(result, "output"))

    def _session(self, params: Mapping[str, JSON]) -> AgentSession:
        """The session that a message is about; an unannounced session begins here."""
        id = text_at(params, _SESSION)
        session = self._open.get(id)
        if session is None:
            session = self._open[id] = self._sessions.begin(Opening(id=id, agent=self._agent))
            session.muted = False
        return session

    def _opening(self, id: str, params: Mapping[str, JSON], result: Mapping[str, JSON]) -> Opening:
        more = [one for one in items_at(params, "additionalDirectories") if isinstance(one, str)]
        directories = (text_at(params, "cwd"), *more)
        return Opening(id=id, agent=self._agent, directories=directories, result=result)


def _agent(result: Mapping[str, JSON]) -> Agent:
    info = mapping_at(result, "agentInfo")
    able = mapping_at(result, "agentCapabilities")
    resumes = mapping_at(able, "sessionCapabilities").get("resume") is not None
    return Agent(
        name=text_at(info, "name"),
        version=text_at(info, "version"),
        resumable=able.get("loadSession") is True or resumes,
    )
