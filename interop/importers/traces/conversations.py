"""Spans, joined to conversations.

Each model call repeats the conversation so far, wrappers repeat what is inside of them, and a turn
may be a separate trace. So the innermost calls count: a person's messages follow the last reply in
a call's input, and were not seen before; the agent's messages and calls are the output; a tool's
span is the outcome of a call, by its id, else by its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, final

import msgspec

from ....engine.events import JSON, ActionResolved, ActionTaken, MessageSent, Tokens
from ....engine.records import Record
from ..claude_code.questions import QuestionReader
from ..conversation.builder import Participants
from ..conversation.steps import (
    AGENT,
    HUMAN,
    ModelUse,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from ..conversation.transcript import Entry, Transcript
from ..protocol import Diagnostic
from .messages import Message, messages_of, texts_in
from .spans import LEVELS, Span, SpanKind, value_of

__all__ = ("ConversationReader", "by_session", "transcripts_of")

_ARGUMENTS: Final = "input"
_SILENT: Final = "no text of a message is in its spans: the program that wrote them has to record inputs and outputs"
_EXECUTES: Final = re.compile(
    r"(?:execute_tool|execute tool|running tool|call_tool|tool|function)\b:?\s+(\S.*)",
    re.IGNORECASE,
)
"""Names that frameworks give to a tool's span, before the tool's name."""


def transcripts_of(
    spans: Sequence[Span],
    *,
    format: str,
    where: str,
    inputs: Sequence[JSON] = (),
    config: Mapping[str, JSON] | None = None,
) -> Iterator[Transcript]:
    """The conversations in spans, in the order in which they began.

    Args:
        spans: in any order; one that occurs twice counts once.
        format: name of the importer.
        where: the place in the source.
        inputs: the inputs of the whole, in addition to the inputs of outermost spans.
        config: settings and metadata to keep.
    """
    for session, members in by_session(spans).items():
        reader = ConversationReader(inputs)
        entries = list(reader.read(members))
        if not entries:
            continue
        found = reader.transcript(session, entries, members, format, where, config or {})
        if not any(isinstance(step, Utterance) for entry in entries for step in entry.steps):
            silent = Diagnostic("difference", _SILENT, where, session)
            found = msgspec.structs.replace(found, entries=[*entries, silent])
        yield found


def by_session(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """The spans of each conversation in the order of their beginnings, each once.

    A span belongs to the conversation that it names, else to the one that its trace names; a trace
    that names none is a separate conversation.
    """
    found = {(span.trace, span.id): span for span in reversed(list(spans))}
    named: dict[str, str] = {}
    ordered = sorted(found.values(), key=lambda span: (span.start, span.end or span.start, span.id))
    for span in ordered:
        if span.conversation is not None:
            named.setdefault(span.trace, span.conversation)
    grouped: dict[str, list[Span]] = {}
    for span in ordered:
        session = span.conversation or named.get(span.trace, span.trace)
        grouped.setdefault(session, []).append(span)
    return grouped


_LABEL: Final = re.compile(
    r"(?:observation|tool (?:result|output|response)|result|output)\b[^:\n]{0,40}:\s*",
    re.IGNORECASE,
)
"""Labels that programs put before a result in a message of role ``user``."""
_TELLING: Final = 12  # characters: a shorter part of a result may well be a person's word
_OUTCOMES: Final = 1_000  # texts of results that are kept of a trace


class _Turn:
    """One trace: tells messages of a person from those that a program wrote in the person's name.

    Attributes:
        heard: something of the person's was read.
        acted: the last that the agent did was to call a tool.
    """

    def __init__(self) -> None:
        self.heard = False
        self.acted = False
        self._outcomes: dict[int, None] = {}

    def learn(self, output: JSON) -> None:
        """Notes the outcome of a tool."""
        whole = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        texts = [whole, *(one for one in texts_in(output) if len(one.strip()) >= _TELLING)]
        for text in texts:
            self._outcomes[hash(_plain(text))] = None
        while len(self._outcomes) > _OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]

    def is_result(self, text: str) -> bool:
        """Whether a text that is said to be a person's is the outcome of a tool just called."""
        if not self.acted:
            return False
        label = _LABEL.match(text)
        bare = text[label.end() :] if label is not None else text
        return any(hash(_plain(one)) in self._outcomes for one in (text, bare))


def _plain(text: str) -> str:
    """A text to compare by: JSON is spelled one way."""
    value = value_of(text.strip())
    return value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()


def _unanswered(messages: Sequence[Message], last: int) -> list[str]:
    """The calls of the last reply, if none of them has a result after it. No model continues
    without results, so the next messages are the results.
    """
    if last < 0:
        return []
    calls = [step.call or step.tool for step in messages[last].steps if isinstance(step, ToolCall)]
    behind = (step for one in messages[last + 1 :] for step in one.steps)
    return [] if any(isinstance(step, ToolResult) for step in behind) else calls


def _answers_around(
    spans: Sequence[Span], inside: Mapping[tuple[str, str], Sequence[Span]]
) -> dict[tuple[str, str], JSON]:
    """By call of a model whose answer is blank: the answer of the span around it, if it has one."""
    found: dict[tuple[str, str], JSON] = {}
    for span in spans:
        within = inside.get((span.trace, span.id), ())
        if len(within) == 1 and _is_blank(within[0].output) and not _is_blank(span.output):
            found[within[0].trace, within[0].id] = span.output
    return found


def _is_blank(output: JSON) -> bool:
    steps = [step for message in messages_of(output, AGENT) for step in message.steps]
    return all(isinstance(s, Utterance) and s.text.strip() in ("", "None", "null") for s in steps)


class _Place(NamedTuple):
    """The place of a span."""

    trace: str
    parent: str | None
    kind: SpanKind
    agent: str | None
    tool: str | None


@final
class ConversationReader:
    """Reads one conversation, all of its spans at once, or some after others.

    Args:
        inputs: what went into the whole.

    Attributes:
        main: name of the main agent, the first of whom a model was called; None if no span says.
    """

    def __init__(self, inputs: Sequence[JSON] = ()) -> None:
        self.main: str | None = None
        self._known = False
        self._whole = {text.strip() for held in inputs for text in texts_in(held)}
        self._places: dict[tuple[str, str], _Place] = {}
        self._roots: dict[str, set[str]] = {}
        self._wrappers: set[tuple[str, str]] = set()
        self._said: Counter[str] = Counter()
        self._turns: dict[str, _Turn] = {}
        self._open: dict[str, ToolCall] = {}
        self._questions = QuestionReader()

    def read(self, spans: Sequence[Span]) -> Iterator[Entry]:
        """Yields the entries of each span.

        Args:
            spans: in the order of their beginnings.
        """
        for span in spans:
            tool = span.tool or _tool_of(span) if span.kind == "tool" else None
            place = _Place(span.trace, span.parent, span.kind, span.agent, tool)
            self._places[span.trace, span.id] = place
        inside: dict[tuple[str, str], list[Span]] = {}
        for span in spans:
            if span.kind == "model":
                around = takewhile(lambda one: one[1].kind != "tool", self._around(span))
                for key in (key for key, place in around if place.kind == "model"):
                    self._wrappers.add(key)
                    inside.setdefault(key, []).append(span)
            elif span.kind != "link" and self._is_outermost(span):
                found = self._roots.setdefault(span.trace, set())
                found.update(text.strip() for text in texts_in(span.input))
        if not self._known:
            agents = [self._agent(span) for span in spans if span.kind == "model"]
            self.main = next((agent for agent in agents if agent), None)
            self._known = bool(agents)
        answers = _answers_around(spans, inside)
        for span in spans:
            if span.kind != "link":
                output = answers.get((span.trace, span.id))
                if output is not None:
                    span = msgspec.structs.replace(span, output=output)
                yield from self._entries(span)

    def resume(self, records: Iterable[Record]) -> None:
        """Takes up a conversation that was recorded before, as far as it was read.

        Args:
            records: the records of its trace, in order, from the first.

        Raises:
            CodecError: a body is damaged.
        """
        versions: dict[int, str] = {}
        for record in records:
            event = record.event
            match event:
                case MessageSent(text=text) if record.role != "agent":
                    self._said[text.strip()] += 1
                case ActionTaken(name=tool, arguments=arguments):
                    own = (record.caller_id or "").split("/", 3)
                    call = own[3] if len(own) == 4 else ""
                    key = versions[record.version] = call or f"{record.version}/{tool}"
                    self._open[key] = ToolCall(AGENT, None, call, tool, arguments)
                case ActionResolved(action=action):
                    self._open.pop(versions.get(action, ""), None)
                case _:
                    pass
            self._known = self._known or record.kind == "ModelCalled"

    def transcript(
        self,
        session: str,
        entries: Sequence[Entry],
        spans: Sequence[Span],
        format: str,
        where: str,
        config: Mapping[str, JSON],
    ) -> Transcript:
        """The session that begins with these entries, which were read from these spans."""
        own = [span for span in spans if span.kind != "link"]
        return Transcript(
            session=session,
            format=format,
            where=where,
            entries=entries,
            participants=Participants(
                (step for entry in entries for step in entry.steps), (HUMAN, AGENT)
            ),
            start=own[0].start,
            task=next((span.task for span in own if span.task), None),
            instance=next((span.instance for span in own if span.instance), None),
            problem=next((span.problem for span in own if span.problem), None),
            models={AGENT: next((span.model for span in own if span.model), None)},
            policies={AGENT: self.main},
            config=config,
        )

    def _entries(self, span: Span) -> Iterator[Entry]:
        """The entries of a span."""
        name = self._name(span)
        if (span.trace, span.id) in self._wrappers:
            return  # the calls inside of it say the same
        if span.kind == "human":
            steps = tuple(self._typed(span))
        elif span.kind == "model":
            heard = tuple(self._questions.read(self._heard(span))) if name is None else ()
            if heard:
                yield Entry(f"{span.key}-in", span.where, span.start, heard)
            steps = tuple(self._questions.read(self._answered(span, name)))
        else:
            steps = tuple(self._questions.read(self._executed(span, name)))
        if steps:
            yield Entry(span.key, span.where, span.end or span.start, steps)

    def _typed(self, span: Span) -> Iterator[Step]:
        """A person's message, in a separate span."""
        for message in messages_of(span.output, HUMAN):
            self._said[message.text.strip()] += 1
            yield from message.steps

    def _heard(self, span: Span) -> Iterator[Step]:
        """A person's messages before a call, and results of calls without a separate span."""
        messages = messages_of(span.input, HUMAN)
        turn = self._turns.setdefault(span.trace, _Turn())
        counts = Counter(one.text.strip() for one in messages if one.role == HUMAN)
        last = max((n for n, one in enumerate(messages) if one.role == AGENT), default=-1)
        for number, one in enumerate(messages):
            for step in one.steps:
                if isinstance(step, ToolResult):
                    turn.learn(step.output)
                    new_one = number > last  # what names no call is about the last ones
                    key = self._open_call(step.call) if step.call or new_one else None
                    if key is not None:
                        call = self._open.pop(key)
                        yield ToolResult(call.call, step.output, step.error)
        new = [one for one in messages[last + 1 :] if one.role == HUMAN and one.text.strip()]
        new = [one for one in new if counts[one.text.strip()] > self._said[one.text.strip()]]
        asked = self._roots.get(span.trace, set()) | self._whole
        unanswered = _unanswered(messages, last)
        known = [one for one in new if one.text.strip() in asked]
        for one in new:
            text = one.text.strip()
            if text not in asked and (unanswered or turn.is_result(text)):
                if unanswered:
                    yield from self._results_of(unanswered.pop(0), one)
                continue
            typed = not known or one in known
            if not one.named and text not in asked and (asked or turn.heard):
                typed = False  # no span says that it is the person's
            if typed or text not in self._said:
                self._said[text] += 1
                turn.heard = turn.heard or typed
                # Texts recorded as the person's are not part of the input of the whole.
                yield from one.steps if typed else _as_system(one)

    def _results_of(self, call: str, message: Message) -> Iterator[Step]:
        """The outcome of a call, out of a message that has the role of a person."""
        key = self._open_call(call)
        if key is not None:
            yield ToolResult(self._open.pop(key).call, message.text)

    def _answered(self, span: Span, name: str | None) -> Iterator[Step]:
        if span.called:
            yield ModelUse(
                model=span.model,
                tokens=span.tokens or Tokens(),
                name=name,
                purpose=span.purpose or "act",
                latency=max(0.0, (span.end or span.start) - span.start),
                cost=span.cost,
                error=span.error,
                id=f"call/{span.key}",
            )
        calls = 0
        answer = messages_of(span.output, AGENT)
        self._turns.setdefault(span.trace, _Turn()).acted = any(
            isinstance(step, ToolCall) for message in answer for step in message.steps
        )
        for message in answer:
            for step in message.steps:
                if isinstance(step, Reasoning) and not step.text.strip():
                    continue
                if isinstance(step, ToolCall):
                    calls += 1
                    own = step.call or f"{span.id}-{calls}"
                    step = ToolCall(AGENT, name, own, step.tool, step.arguments, step.raw)
                    self._open[own] = step
                elif isinstance(step, Utterance):
                    if not step.text.strip():
                        continue
                    step = Utterance(AGENT, name, step.text)
                yield step

    def _executed(self, span: Span, name: str | None) -> Iterator[Step]:
        """The outcome of a call; a call and its outcome if no model asked for it."""
        key = self._call_of(span)
        output = value_of(span.output)
        if isinstance(output, Mapping) and "tool_call_id" in output:
            output = output.get("content")
        turn = self._turns.setdefault(span.trace, _Turn())
        if key is not None or span.kind == "tool":
            turn.acted = True
            turn.learn(output)
        if key is not None:
            call = self._open.pop(key)
            yield ToolResult(call.call, output, span.error)
        elif span.kind == "tool":
            given = value_of(span.input)
            arguments = given if isinstance(given, Mapping) else {_ARGUMENTS: given}
            tool = span.tool or _tool_of(span)
            yield ToolCall(AGENT, name, span.id, tool, arguments if given is not None else {})
            yield ToolResult(span.id, output, span.error)

    def _call_of(self, span: Span) -> str | None:
        """Which open call a span executes."""
        if span.kind in ("model", "agent"):
            return None
        if span.call is not None and span.call in self._open:
            return span.call
        tools = {span.tool or span.name.rpartition(".")[2], span.tool or _tool_of(span)}
        same = [key for key, call in self._open.items() if call.tool in tools]
        given = value_of(span.input)
        alike = (key for key in same if self._open[key].arguments == given)
        return next(alike, next(iter(same), None))

    def _open_call(self, call: str) -> str | None:
        """The open call of this id; else the first of the tool of this name, if that is all that
        a result says, or the first of all if it says nothing.
        """
        if not call:
            return next(iter(self._open), None)
        if call in self._open:
            return call
        return next((key for key, one in self._open.items() if one.tool == call), None)

    def _around(self, span: Span) -> Iterator[tuple[tuple[str, str], _Place]]:
        """The spans around one that are known, from the inside, with their trace and id.

        No further out than ``LEVELS``: the time that a trace takes grows with its spans, however they
        are nested, also in a circle.
        """
        seen = {span.id}
        at = span.parent
        while at is not None and at not in seen and len(seen) <= LEVELS:
            seen.add(at)
            place = self._places.get((span.trace, at))
            if place is None:
                return
            yield (span.trace, at), place
            at = place.parent

    def _is_outermost(self, span: Span) -> bool:
        return all(place.kind == "link" for _, place in self._around(span))

    def _agent(self, span: Span) -> str | None:
        """The innermost agent whose turn a span is a part of."""
        if span.kind == "agent" and span.agent is not None:
            return span.agent
        for _, place in self._around(span):
            if place.kind in ("agent", "model") and place.agent is not None:
                return place.agent
            if place.kind == "tool" and span.kind == "model":
                return place.tool  # a tool that calls a model is a separate agent
        return None

    def _name(self, span: Span) -> str | None:
        """The agent's name in the session; None for the main one."""
        agent = self._agent(span)
        return None if agent is None or agent == self.main else agent


def _tool_of(span: Span) -> str:
    """The tool that a span's name speaks of."""
    found = _EXECUTES.fullmatch(span.name)
    return span.name if found is None else found[1]


def _as_system(message: Message) -> Iterator[Step]:
    yield Utterance("system", None, message.text)
