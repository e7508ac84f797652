"""The importer that a mapping describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, final

import msgspec

from ...engine import codec
from ...engine.budget import Budget
from ...engine.errors import InvalidInput, MissingExtra, malformed
from ...engine.events import JSON, ScorerRef, Tokens, UtilityScored
from ...engine.patterns import compiled
from ...engine.settings import mismatch, read_settings
from .conversation.builder import Participants
from .conversation.numbers import count_of, share_of
from .conversation.steps import (
    AGENT,
    HUMAN,
    Feedback,
    ModelUse,
    Output,
    Rating,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from .json_files import Piece, decode, pieces_of
from .json_sniff import Shape
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of
from .trace_builder import arguments_of

__all__ = ("MappingImporter", "load_mapping")

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery
    from jsonpath_rfc9535.filter_expressions import Expression


Side: TypeAlias = Literal["human", "agent", "operator", "system", "result", "skip"]
"""The meanings of a role: a person, an agent, a human operator who answers in the agent's
place, the environment, the result of a call, or nothing that is imported."""


class SessionMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paths of sessions; all but ``each`` are looked up in a session.

    Attributes:
        each: the sessions in a document; the document itself unless said. Lines, and the elements
            of an array, are separate documents.
        id: the session's own id.
        task: name of the task.
        instance: the instance of the task.
        agent: name of the agent, to group by.
        model: that the agent ran on.
        utility: a result: a score in [0, 1], or true or false.
        user: whose session it is, by a pseudonym: the label ``user``.
        labels: more labels to group by, each with its path.
        feedback: the feedback of the user on the whole: thumbs, as in a message.
        comment: the comment of the user on the whole.
        rating: the rating of the user, 1 to 5, for the last round.
    """

    each: str = "$"
    id: str | None = None
    task: str | None = None
    instance: str | None = None
    agent: str | None = None
    model: str | None = None
    utility: str | None = None
    user: str | None = None
    labels: Mapping[str, str] = {}
    feedback: str | None = None
    comment: str | None = None
    rating: str | None = None


class MessageMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paths of messages; all but ``each`` are looked up in a message.

    Attributes:
        each: the messages in a session, in order.
        role: the role of the speaker, one of the names in ``roles``.
        text: the text of the message.
        name: the name of the speaker, if several have one role.
        time: ISO 8601, or seconds since the epoch.
        call: for a result, the id of its call.
        input_tokens: the input tokens of the model call behind the message.
        output_tokens: likewise.
        feedback: the feedback of the user on this message: true or ``up``, false or ``down``, or a
            number: 1 is up, 0 and -1 are down.
        comment: the comment of the user on this message.
        rating: the rating of the progress of this message's round by the user, 1 to 5.
    """

    each: str
    role: str
    text: str
    name: str | None = None
    time: str | None = None
    call: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    feedback: str | None = None
    comment: str | None = None
    rating: str | None = None


class CallMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paths of tool calls; all but ``each`` are looked up in a call.

    Attributes:
        each: the calls in a message, in order.
        name: the name of the tool.
        id: the id of the call.
        arguments: an object, or JSON in a text.
        result: what the tool gave.
        error: why it failed; no error if it is missing, null, false or empty.
    """

    each: str
    name: str
    id: str | None = None
    arguments: str | None = None
    result: str | None = None
    error: str | None = None


class OutputMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Path of the shared output in a message, in full, as it is after the message.

    Attributes:
        content: text, or structure.
        media_type: the media type of the content.
    """

    content: str
    media_type: str = "text/plain"


class MappingSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping.

    Attributes:
        session: paths of sessions.
        message: paths of messages in a session.
        roles: what each role is; a role that is not named is a problem.
        call: paths of calls in a message; None for no calls.
        output: path of the shared output in a message; None for none.
    """

    message: MessageMapping
    roles: Mapping[str, Side]
    session: SessionMapping = SessionMapping()
    call: CallMapping | None = None
    output: OutputMapping | None = None


def load_mapping(path: Path) -> MappingSpec:
    """The mapping in a TOML file.

    Raises:
        InvalidInput: it cannot be read, is not a mapping, or has an invalid path.
        MissingExtra: the library that evaluates JSONPath is missing.
    """
    settings = read_settings(path)
    try:
        spec = msgspec.convert(settings, type=MappingSpec)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path} is not a mapping: {mismatch(error)}") from error
    for table, part in msgspec.structs.asdict(spec).items():
        if isinstance(part, msgspec.Struct):
            for name, held in msgspec.structs.asdict(part).items():
                if isinstance(held, str) and name != "media_type":
                    query(held, f"{path}: {table}.{name}")
    for name, held in spec.session.labels.items():
        if name in _OWN_LABELS:
            raise InvalidInput(f"{path}: session.labels.{name}: use session.{name} instead")
        query(held, f"{path}: session.labels.{name}")
    return spec


def query(text: str, where: str) -> JSONPathQuery:
    """A JSONPath, compiled.

    Raises:
        InvalidInput: it is not a JSONPath, or it could take very long on a large document.
        MissingExtra: there is nothing to evaluate it with.
    """
    try:
        import jsonpath_rfc9535
    except ModuleNotFoundError as error:
        raise MissingExtra("mapping", "a mapping") from error
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"{where}: a JSONPath has at most {_LONGEST:,} characters, not {len(text):,}"
        )
    try:
        found = jsonpath_rfc9535.compile(text)
    except (jsonpath_rfc9535.JSONPathError, RecursionError) as error:
        why = malformed(error)
        raise InvalidInput(f"{where}: {text!r} is not a JSONPath: {why}") from error
    try:
        _check_work(found, 0)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {text!r} {error}") from None
    return found


def _check_work(path: JSONPathQuery, depth: int) -> None:
    """Checks that a path takes time in proportion to a document.

    Args:
        path: the path, or one in a filter.
        depth: how many segments around it search at all depths.

    Raises:
        InvalidInput: it does not; says why.
    """
    from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment
    from jsonpath_rfc9535.selectors import FilterSelector

    for segment in path.segments:
        depth += isinstance(segment, JSONPathRecursiveDescentSegment)
        if depth > _DESCENTS:
            raise InvalidInput(f"searches at all depths (..) more than {_DESCENTS} times")
        for selector in segment.selectors:
            if isinstance(selector, FilterSelector):
                _check_filter(selector.expression, depth)


def _check_filter(expression: Expression, depth: int) -> None:
    """Checks an expression of a filter, which is evaluated for each value; raises as ``_check_work``."""
    from jsonpath_rfc9535 import filter_expressions as known

    match expression:
        case known.RootFilterQuery(query=path):
            if not path.singular_query():
                raise InvalidInput(
                    f"looks up {str(path)!r} again for each value; a filter may look up many values "
                    "from @, and one value from $"
                )
        case known.RelativeFilterQuery(query=path):
            _check_work(path, depth)
        case known.FilterExpression(expression=inner) | known.PrefixExpression(right=inner):
            _check_filter(inner, depth)
        case (
            known.LogicalExpression(left=left, right=right)
            | known.ComparisonExpression(left=left, right=right)
        ):
            _check_filter(left, depth)
            _check_filter(right, depth)
        case known.FunctionExtension(name=name, args=arguments):
            if name in ("match", "search"):
                pattern = arguments[1]
                if not isinstance(pattern, known.StringLiteral):
                    raise InvalidInput(f"has a pattern in {name}() that is not a text in quotes")
                compiled(pattern.value)
            for argument in arguments:
                _check_filter(argument, depth)


def found(path: JSONPathQuery | None, value: JSON) -> JSON:
    """The first value that a path finds; None if it finds none."""
    return next(iter(all_found(path, value)), None) if path is not None else None


def all_found(path: JSONPathQuery | None, value: JSON) -> list[JSON]:
    """All values that a path finds, in order.

    Raises:
        InvalidInput: it cannot be followed in this value.
    """
    if path is None or not isinstance(value, (dict, list)):
        return [value] if path is not None and str(path) == "$" else []
    from jsonpath_rfc9535 import JSONPathError

    most = _DOCUMENT.objects  # a path may pass through a value many times
    try:
        nodes = list(islice(path.finditer(value), most + 1))
    except JSONPathError as error:
        raise InvalidInput(f"{str(path)!r} cannot be followed: {error}") from error
    if len(nodes) > most:
        raise InvalidInput(f"{str(path)!r} finds more than {most:,} values")
    return [cast("JSON", node.value) for node in nodes]


# --- the importer that a mapping describes --------------------------------------------------------


_NAME: Final = "mapping"
_SCORER: Final = ScorerRef(name=_NAME, version="1", config=codec.digest({"value": "utility"}))
_SIDES: Final[Mapping[Side, str]] = {
    "human": HUMAN,
    "agent": AGENT,
    "operator": AGENT,
    "system": "system",
}
_OPERATOR: Final = "operator"
_OWN_LABELS: Final = frozenset({"agent", "user", "task", "instance", "model"})
_UP: Final = frozenset(
    {"up", "thumbs_up", "thumbs-up", "positive", "good", "like", "true", "1", "👍"}
)
_DOWN: Final = frozenset(
    {"down", "thumbs_down", "thumbs-down", "negative", "bad", "dislike", "false", "0", "-1", "👎"}
)
_LIKERT: Final = range(1, 6)
_LONGEST: Final = 1000  # characters of a path
_DESCENTS: Final = 2  # times that it may search at all depths
_DOCUMENT: Final = Budget(objects=1 << 20)
"""Limits for a document: its values become objects of Python, of about 250 bytes each."""


@final
class MappingImporter:
    """Reads JSON or JSON Lines as a mapping says.

    Args:
        spec: the mapping.
        name: the name of the mapping, recorded as the format.
    """

    about = "JSON as a mapping describes it"

    def __init__(self, spec: MappingSpec, name: str = _NAME) -> None:
        self._spec = spec
        self._name = name
        self._paths: dict[str, JSONPathQuery] = {}

    @property
    def name(self) -> str:
        """Name of the mapping."""
        return self._name

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Never: a mapping is named, not guessed."""
        return False

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all sessions.

        Raises:
            InvalidInput: there are none, or the file cannot be read.
        """
        some = False
        for piece in pieces_of(source):
            try:
                document = _document(piece)
                for number, session in enumerate(self._all("session", "each", document), start=1):
                    some = True
                    yield from self._session(session, piece, number, reading)
            except InvalidInput as error:
                some = True
                yield Diagnostic("problem", f"invalid document: {error}", piece.where)
        if not some:
            path = self._spec.session.each
            raise InvalidInput(f"{source}: nothing is found at session.each, which is {path!r}")

    def _session(self, held: JSON, piece: Piece, number: int, reading: Reading) -> Iterator[Found]:
        where = piece.where if number == 1 else f"{piece.where}, session {number}"
        own = self._one("session", "id", held)
        name = str(own) if isinstance(own, (str, int)) and str(own).strip() else None
        session = name or f"{self._name}-{codec.digest(held)[:12]}"
        entries: list[Entry] = []
        for count, message in enumerate(self._all("message", "each", held), start=1):
            place = f"{where}, message {count}"
            try:
                steps = (*self._steps(message), *self._judged("message", message, count))
            except InvalidInput as error:
                yield Diagnostic("problem", str(error), place, session)
                continue
            time = seconds_of(self._one("message", "time", message), reading.zone)
            entries.append(Entry(count, place, time, steps))
        if not entries:
            path = self._spec.message.each
            what = f"nothing is found at message.each, which is {path!r}"
            yield Diagnostic("problem", what, where, session)
            return
        try:
            whole = tuple(self._judged("session", held, None))
            labels = self._labels(held)
        except InvalidInput as error:
            yield Diagnostic("problem", str(error), where, session)
            return
        if whole:
            entries.append(Entry("whole", where, None, whole))
        operators = self._operators(held)
        transcript = Transcript(
            session=session,
            format=self._name,
            where=where,
            entries=entries,
            participants=Participants(
                (step for entry in entries for step in entry.steps), (HUMAN, AGENT)
            ),
            start=beginning_of(entries),
            task=_text(self._one("session", "task", held)),
            instance=_text(self._one("session", "instance", held)),
            models={AGENT: _text(self._one("session", "model", held))},
            policies=dict.fromkeys(operators, _OPERATOR),
            config={"group": labels} if labels else {},
            scores=tuple(self._scores(held)),
        )
        yield from read_transcript(transcript, reading)

    def _steps(self, message: JSON) -> Iterator[Step]:
        role = self._one("message", "role", message)
        side = self._spec.roles.get(str(role))
        if side is None:
            known = ", ".join(sorted(self._spec.roles))
            raise InvalidInput(f"its role is {role!r}, but [roles] has only {known}")
        if side == "skip":
            return
        name = _text(self._one("message", "name", message))
        if side == _OPERATOR:
            name = name or _OPERATOR
        counts = {
            "prompt": self._one("message", "input_tokens", message),
            "completion": self._one("message", "output_tokens", message),
        }
        used = Tokens(**{field: count_of(count) for field, count in counts.items()})
        if used != Tokens() and side == "agent":
            yield ModelUse(tokens=used, name=name)
        text = self._one("message", "text", message)
        if side == "result":
            call = self._one("message", "call", message)
            yield ToolResult(str(call) if call is not None else "", text)
            return
        said = text if isinstance(text, str) else "" if text is None else _json(text)
        if said.strip():
            yield Utterance(_SIDES[side], name, said)
        if self._spec.call is not None:
            for number, call in enumerate(self._all("call", "each", message), start=1):
                yield from self._call(call, side, name, number)
        if self._spec.output is not None:
            content = self._one("output", "content", message)
            if content is not None and side in ("human", "agent", _OPERATOR):
                yield Output(_SIDES[side], name, content, self._spec.output.media_type)

    def _call(self, call: JSON, side: Side, name: str | None, number: int) -> Iterator[Step]:
        tool = _text(self._one("call", "name", call))
        if tool is None:
            raise InvalidInput(f"call {number} lacks a name")
        ident = self._one("call", "id", call)
        given = self._one("call", "arguments", call)
        raw: str | None = None
        if isinstance(given, str):
            given, raw = arguments_of(given)
        key = str(ident) if ident is not None else ""
        arguments = given if isinstance(given, Mapping) else {}
        yield ToolCall(_SIDES.get(side, AGENT), name, key, tool, arguments, raw)
        result, error = self._one("call", "result", call), self._one("call", "error", call)
        if result is not None or error:
            why = None if not error else error if isinstance(error, str) else _json(error)
            yield ToolResult(key, result, why)

    def _scores(self, held: JSON) -> Iterator[UtilityScored]:
        if self._spec.session.utility is None:
            return
        value = self._one("session", "utility", held)
        share = float(value) if isinstance(value, bool) else share_of(value)
        if share is not None:
            yield UtilityScored(scorer=_SCORER, value=share)
        else:
            wrong = f"{value!r} is neither in [0, 1] nor true or false"
            missing = "the source has no score" if value is None else wrong
            yield UtilityScored(scorer=_SCORER, missing=missing[:200])

    def _labels(self, held: JSON) -> dict[str, JSON]:
        """The labels of a session: those that it has."""
        paths = {"agent": None, "user": None, **self._spec.session.labels}
        labels: dict[str, JSON] = {}
        for name, path in paths.items():
            where = f"session.labels.{name}"
            value = (
                self._one("session", name, held)
                if path is None
                else found(self._compiled(path, where), held)
            )
            if isinstance(value, (dict, list)):
                raise InvalidInput(
                    f"label {name} must be a text, a number, true or false, not {_json(value)[:80]}"
                )
            if value is not None and str(value).strip():
                labels[name] = _json(value) if isinstance(value, bool) else str(value)
        return labels

    def _operators(self, held: JSON) -> set[str]:
        """The names of people who answered in the agent's place."""
        named = (
            _text(self._one("message", "name", message)) or _OPERATOR
            for message in self._all("message", "each", held)
            if self._spec.roles.get(str(self._one("message", "role", message))) == _OPERATOR
        )
        return set(named)

    def _judged(self, table: str, held: JSON, number: int | None) -> Iterator[Step]:
        """The user's feedback and rating of a message, or of the whole session."""
        given = self._one(table, "feedback", held)
        comment = self._one(table, "comment", held)
        said = comment if isinstance(comment, str) else ""
        if given is not None or said.strip():
            yield Feedback(thumbs=_thumbs(given), comment=said, of=number)
        rating = self._one(table, "rating", held)
        if rating is not None:
            if isinstance(rating, bool) or rating not in _LIKERT:
                raise InvalidInput(f"its rating is {rating!r}, not 1 to 5")
            yield Rating(value=int(cast("float", rating)), of=number)

    def _compiled(self, text: str, key: str) -> JSONPathQuery:
        if key not in self._paths:
            self._paths[key] = query(text, key)
        return self._paths[key]

    def _path(self, table: str, field: str) -> JSONPathQuery | None:
        part = getattr(self._spec, table)
        text = getattr(part, field, None)
        if text is None:
            return None
        return self._compiled(text, f"{table}.{field}")

    def _one(self, table: str, field: str, value: JSON) -> JSON:
        return found(self._path(table, field), value)

    def _all(self, table: str, field: str, value: JSON) -> list[JSON]:
        return all_found(self._path(table, field), value)


def _document(piece: Piece) -> JSON:
    _DOCUMENT.check_json(piece.data)
    if bytes(piece.data).lstrip()[:1] == b"[":
        return decode(piece.data, list[JSON])
    return decode(piece.data, dict[str, JSON])


def _thumbs(value: JSON) -> bool | None:
    """Whether feedback is thumbs up; None if there is only a comment.

    Raises:
        InvalidInput: it says neither up nor down.
    """
    if value is None or isinstance(value, bool):
        return value
    word = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if word.strip().casefold() in _UP:
        return True
    if word.strip().casefold() in _DOWN:
        return False
    raise InvalidInput(f"its feedback is {value!r}, neither up nor down; use rating for numbers")


def _text(value: JSON) -> str | None:
    if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
        return str(value)
    return None


def _json(value: JSON) -> str:
    return msgspec.json.encode(value).decode()
