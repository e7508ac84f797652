"""One session of Collaborative Gym: its records, turned into events one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import (
    JSON,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    Nudged,
    Role,
    SessionOpened,
)
from ....engine.records import ENVIRONMENT
from ..json_files import decode
from ..protocol import Foreign, Found, Reading
from ..timestamps import seconds_of
from ..trace_builder import TraceBuilder
from .files import ChatLine, Differences, Row

__all__ = (
    "FINISH",
    "ActionCall",
    "SessionReader",
    "Signatures",
    "call_of",
    "parse_call",
    "role_of",
    "succeeded",
    "unquoted",
)

Signatures = Mapping[str, Sequence[Sequence[str]]]
"""By name of a call, the parameters that it takes, in order; several if it has several forms."""

_BEGIN: Final = re.compile(r"\s*([A-Za-z_]\w*)\(")
_AMIDST: Final = re.compile(r"\b([A-Z][A-Z_]+)\(")
_KEY: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=")
_NEXT: Final = re.compile(r",\s*[A-Za-z_]\w*\s*=")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[ntr'\"\\])")
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r"}
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


class ActionCall(NamedTuple):
    """A call.

    Attributes:
        name: empty if the text is not a call.
        values: unchanged, by key, in order.
        readable: whether ``values`` covers the whole text.
    """

    name: str
    values: Mapping[str, str]
    readable: bool

    @property
    def arguments(self) -> dict[str, str]:
        """The values without their quotes."""
        return {key: unquoted(value) for key, value in self.values.items()}


def parse_call(text: str, signatures: Signatures = {}) -> ActionCall:  # noqa: B006 (never changed)
    """Reads a call. Any text has an answer, if only that it is not readable.

    A call in the midst of prose is found if its name is in capitals, as agents that think aloud
    write it; it is not readable, since there is more in the text.
    """
    begin = _BEGIN.match(text)
    alone = begin is not None
    if begin is None:
        begin = _AMIDST.search(text)
    if begin is None:
        return ActionCall("", {}, readable=False)
    name, rest = begin.group(1), text[begin.end() :].rstrip()
    end = rest.rfind(")")
    if end < 0:
        return ActionCall(name, {}, readable=False)
    alone = alone and end == len(rest) - 1
    values = _values(rest[:end], signatures.get(name, ()))
    return ActionCall(name, values or {}, readable=alone and values is not None)


def unquoted(value: str) -> str:
    r"""A value without its quotes, and with escapes such as ``\n`` resolved."""
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip()
    if "\\" not in text:
        return text
    # Halves of a surrogate pair that were spelled out one by one belong together.
    plain = _ESCAPE.sub(_meant, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _meant(match: re.Match[str]) -> str:
    found = match.group(1)
    return chr(int(found[1:], 16)) if found[0] in "ux" else _PLAIN.get(found, found)


def _values(body: str, forms: Sequence[Sequence[str]]) -> dict[str, str] | None:
    for form in forms:
        found = _by_form(body, form)
        if found is not None:
            return found
    return {} if not body.strip() else _by_look(body)


def _by_form(body: str, form: Sequence[str]) -> dict[str, str] | None:
    """Values of known parameters; if a key occurs twice, the last one counts, and the text before
    it belongs to the previous value.
    """
    if not form:
        return None if body.strip() else {}
    values: dict[str, str] = {}
    for key in reversed(form[1:]):
        mark = f", {key}="
        at = body.rfind(mark)
        if at < 0:
            return None
        values[key] = body[at + len(mark) :]
        body = body[:at]
    mark = f"{form[0]}="
    if not body.startswith(mark):
        return None
    values[form[0]] = body[len(mark) :]
    return {key: values[key] for key in form}


def _by_look(body: str) -> dict[str, str] | None:
    values: dict[str, str] = {}
    at = 0
    while at < len(body):
        key = _KEY.match(body, at)
        if key is None or key.group(1) in values:
            return None
        end = _end_of_value(body, key.end())
        values[key.group(1)] = body[key.end() : end].strip()
        at = end + 1
    return values


def _end_of_value(body: str, start: int) -> int:
    """The start of the next key, outside of quotes and brackets; else the end."""
    closing: list[str] = []
    quote = ""
    begun = False
    at = start
    while at < len(body):
        character = body[at]
        if character == "\\":
            at += 1
        elif quote:
            if character == quote:
                quote = ""
        elif character in "\"'" and not begun:
            quote = character  # one in the midst of a value is an apostrophe
        elif character in _OPENING:
            closing.append(_OPENING[character])
        elif closing and character == closing[-1]:
            closing.pop()
        elif character == "," and not closing and _NEXT.match(body, at):
            return at
        begun = begun or not character.isspace()
        at += 1
    if quote or closing:  # these were not quotes or brackets after all
        found = _NEXT.search(body, start)
        return found.start() if found else len(body)
    return len(body)


# --- what a record of Collaborative Gym says of the state -----------------------------------------


_EDITOR: Final = "editor"
_PLACES: Final = {"DISTANCE_MATRIX": "distance_matrix_output"}
_SEARCHES: Final = "_SEARCH"
_SEARCH_PLACE: Final = "search_output"


class _Observation(msgspec.Struct):
    public: Mapping[str, msgspec.Raw] = {}
    private: Mapping[str, Mapping[str, msgspec.Raw]] = {}


@final
class State:
    """Follows the state from record to record; each holds all of it, and all of the chat.

    Attributes:
        editor: text of the shared editor; None if the log does not say.
        news: messages that have come into the chat since the record before.
    """

    def __init__(self) -> None:
        self.editor: str | None = None
        self.news: Sequence[ChatLine] = ()
        self._said = 0
        self._seen: dict[str, dict[str, bytes]] = {}
        self._changed: dict[str, dict[str, bytes]] = {}

    def take(self, row: Row) -> None:
        """Takes the next record."""
        chat = _chat(row)
        self.news = chat[self._said :]
        self._said = max(self._said, len(chat))
        observation = _observation(row)
        editors = [raw for name, raw in observation.public.items() if name.endswith(_EDITOR)]
        self.editor = _text(editors[0]) if len(editors) == 1 else None
        self._changed = {}
        shared = {name: raw for name, raw in observation.public.items() if _EDITOR not in name}
        for member, seen in {"": shared, **observation.private}.items():
            now = {name: bytes(raw) for name, raw in seen.items()}
            before = self._seen.get(member, {})
            self._changed[member] = {n: raw for n, raw in now.items() if before.get(n) != raw}
            self._seen[member] = now

    def found(self, role: str, action: str) -> JSON:
        """The results of a member's successful action: the changes in its view, or the place where
        such an action puts its results, since a search may find the same again.
        """
        changed = {**self._changed.get("", {}), **self._changed.get(role, {})}
        if not changed:
            place = _PLACES.get(action, _SEARCH_PLACE if action.endswith(_SEARCHES) else None)
            held = self._seen.get(role, {}).get(place) if place is not None else None
            return None if held is None else _result(held)
        if len(changed) == 1:
            return _result(next(iter(changed.values())))
        return {name: _result(raw) for name, raw in changed.items()}


def _chat(row: Row) -> Sequence[ChatLine]:
    try:
        return decode(row.current_chat_history, list[ChatLine] | None) or ()  # type: ignore[arg-type]
    except InvalidInput:
        return ()


def _observation(row: Row) -> _Observation:
    try:
        found = decode(row.current_observation, _Observation | None)  # type: ignore[arg-type]
    except InvalidInput:  # of another kind of environment
        found = None
    return found if isinstance(found, _Observation) else _Observation()


def _text(raw: msgspec.Raw) -> str | None:
    value = decode(raw, object)
    return value if isinstance(value, str) else None


def _result(raw: bytes) -> JSON:
    """A result without its query, which is in the action's arguments."""
    value: JSON = msgspec.json.decode(raw)
    if isinstance(value, dict) and set(value) == {"query", "output"}:
        output: JSON = value["output"]
        return output
    return value or None


# --- one session of Collaborative Gym -------------------------------------------------------------


FINISH: Final = "FINISH"
_EDIT: Final = "EDITOR_UPDATE"
_SAY: Final = "SEND_TEAMMATE_MESSAGE"
_ASK: Final = "REQUEST_TEAMMATE_CONFIRM"
_ANSWERS: Final = {"ACCEPT_CONFIRMATION": True, "REJECT_CONFIRMATION": False}

_SIGNATURES: Final[Signatures] = {
    _EDIT: [["text"]],
    _SAY: [["message"]],
    _ASK: [["request_id", "pending_action"]],
    **{name: [["request_id"]] for name in _ANSWERS},
    FINISH: [[]],
    "START": [["task_description", "query"], ["task_description"]],
    "FLIGHT_SEARCH": [["origin", "destination", "date"]],
    "ACCOMMODATION_SEARCH": [["city"]],
    "RESTAURANT_SEARCH": [["city"]],
    "ATTRACTION_SEARCH": [["city"]],
    "DISTANCE_MATRIX": [["origins", "destinations", "mode"], ["origins", "destinations"]],
    "BUSINESS_SEARCH": [["term", "location", "limit"]],
    "INTERNET_SEARCH": [["query"]],
    "EXECUTE_JUPYTER_CELL": [["code"]],
}
_FAILED: Final = re.compile(r"failed\s*(?:\(action_error: (.*)\))?\s*", re.DOTALL)
_IDLE: Final = "Idle for a long time"
_FAILURE: Final = "takes an action but fails"


def role_of(role: str) -> Role:
    """The role of a member; the published analysis also derives it from the name."""
    if "user" in role:
        return "human"
    return "environment" if role == "environment" else "agent"


def call_of(row: Row) -> ActionCall:
    """The act of a record."""
    return parse_call(row.action, _SIGNATURES)


def succeeded(row: Row) -> bool:
    """Whether the act of a record succeeded."""
    return row.action_status.startswith("succeeded")


@final
class SessionReader:
    """Turns records into events.

    Args:
        builder: builds the trace.
        reading: how times are read.
        differences: how the published analysis would count the records.
    """

    def __init__(self, builder: TraceBuilder, reading: Reading, differences: Differences) -> None:
        self._builder = builder
        self._reading = reading
        self._differences = differences
        self._state = State()
        self._asked: dict[str, int] = {}
        self._timed = False
        self._members: tuple[str, ...] = ()
        self.acts: dict[Role, int] = {"human": 0, "agent": 0}

    def begin(self, row: Row) -> float | None:
        """The time of the first record; None if the log has none."""
        time = seconds_of(row.timestamp, self._reading.zone)
        self._timed = time is not None
        return time

    def opened(self, opened: SessionOpened, row: Row | None, time: float) -> Foreign:
        """The opening, with the state in the first record."""
        self._members = tuple(one.name for one in opened.participants)
        if row is not None:
            self._state.take(row)
        return self._builder.put(opened, ENVIRONMENT, "environment", time)

    def time_of(self, stamp: object) -> float:
        """A time; that of the event before if there is none, or the log began without."""
        time = seconds_of(stamp, self._reading.zone) if self._timed else None
        return self._builder.time if time is None else time

    def read(self, row: Row) -> Iterator[Found]:
        """The events of the next record."""
        yield from self._notices(row)
        role = role_of(row.role)
        if role in self.acts:
            self.acts[role] += 1
        call = call_of(row)
        text = self._edited(row, call) if role != "environment" and succeeded(row) else None
        self._differences.take(row, role, text)
        time = self.time_of(row.timestamp)
        if text is not None:
            yield self._builder.submit(row.role, role, time, text)
        else:
            yield from self._act(row, role, call, time)

    def end(self, row: Row) -> Iterator[Found]:
        """Takes a last record that ends the session without an act; yields what preceded it."""
        yield from self._notices(row)
        role = role_of(row.role)
        self.acts[role] += 1
        self._differences.take(row, role, None)

    def _edited(self, row: Row, call: ActionCall) -> str | None:
        """The text of the editor after an edit that succeeded: as the log has it, else from the
        act; None if it is not an edit.
        """
        if call.name != _EDIT:
            return None
        if self._state.editor is not None:
            return self._state.editor
        arguments = call.arguments
        if "text" in arguments:
            return arguments["text"]
        return next(iter(arguments.values())) if len(arguments) == 1 else None

    def _notices(self, row: Row) -> Iterator[Foreign]:
        """Yields chat messages without a record: the environment's notices."""
        self._state.take(row)
        for said in self._state.news:
            yield from self._notice(said)

    def _notice(self, said: ChatLine) -> Iterator[Foreign]:
        if role_of(said.role) != "environment" or _FAILURE in said.message:
            return  # members' messages have records, and failures are outcomes
        time = self.time_of(said.timestamp)
        if not said.message.startswith(_IDLE):
            yield self._builder.put(MessageSent(text=said.message), said.role, "environment", time)
            return
        for member in self._members:
            event = Nudged(to=member, reason=said.message)
            yield self._builder.put(event, said.role, "environment", time)

    def _act(self, row: Row, role: Role, call: ActionCall, time: float) -> Iterator[Foreign]:
        collaborative = "collaborative" in row.action_type
        if collaborative and call.readable and succeeded(row):
            said = self._said(row, role, call, time)
            if said is not None:
                yield said
                return
        taken = ActionTaken(
            name=call.name or "unreadable",
            arguments=call.arguments,
            raw=None if call.readable else row.action,
            collaborative=collaborative,
        )
        error = None if succeeded(row) else _why(row.action_status)
        found = self._state.found(row.role, call.name) if error is None else None
        yield from self._builder.act(row.role, role, time, taken, error=error, observation=found)

    def _said(self, row: Row, role: Role, call: ActionCall, time: float) -> Foreign | None:
        """A message, a question or an answer; None for another act."""
        arguments = call.arguments
        if call.name == _SAY and "message" in arguments:
            event = MessageSent(text=arguments["message"])
            return self._builder.put(event, row.role, role, time)
        if call.name == _ASK and "pending_action" in arguments:
            return self._ask(row, role, call, time)
        approved = _ANSWERS.get(call.name)
        if approved is None:
            return None
        asked = self._asked.pop(arguments.get("request_id", ""), None)
        if asked is None:
            return None
        given = ApprovalGiven(asked=asked, approved=approved)
        return self._builder.put(given, row.role, role, time)

    def _ask(self, row: Row, role: Role, call: ActionCall, time: float) -> Foreign:
        event = ApprovalAsked(question=call.arguments["pending_action"])
        found = self._builder.put(event, row.role, role, time)
        self._asked[call.arguments.get("request_id", "")] = self._builder.version
        return found


def _why(status: str) -> str:
    found = _FAILED.fullmatch(status)
    return (found.group(1) if found else status) or "it failed, and the log does not say why"
