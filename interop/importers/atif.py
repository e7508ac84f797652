"""The importer for ATIF, the trajectories of Harbor: one document, one session.

The task text is the human's request. Results belong to the calls that they name, else to the calls
of their step, in order; a result without a call becomes a message of the environment. Subagents
whose trajectories are in the document become separate actors. Steps are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, Tokens
from .conversation.builder import Participants
from .conversation.steps import (
    AGENT,
    HUMAN,
    Ending,
    ForeignEntry,
    ModelUse,
    Omission,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, read_transcript
from .documents import Document, documents_in
from .json_files import decode
from .json_sniff import Shape
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of

__all__ = ("AtifImporter",)

_NAME: Final = "atif"
_SIDES: Final = {"user": HUMAN, "agent": AGENT, "system": "system"}


class _Agent(msgspec.Struct):
    name: str | None = None
    version: str | None = None
    model_name: str | None = None


class _Call(msgspec.Struct):
    function_name: str
    tool_call_id: str = ""
    arguments: JSON = None


class _Reference(msgspec.Struct):
    trajectory_id: str | None = None
    session_id: str | None = None


class _Result(msgspec.Struct):
    content: JSON = None
    source_call_id: str | None = None
    subagent_trajectory_ref: list[_Reference] | _Reference | None = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Metrics(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class _Totals(msgspec.Struct):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None


class _Step(msgspec.Struct):
    source: str
    message: JSON = ""
    timestamp: str | float | None = None
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None


@final
class AtifImporter:
    """Reads trajectories of Harbor."""

    name = _NAME
    about = "trajectories of Harbor (ATIF)"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins like a trajectory."""
        return shape is not None and {"schema_version", "steps"} <= shape.keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the trajectories in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        for document in documents_in(source):
            if isinstance(document, Diagnostic):
                yield document
                continue
            try:
                transcript = _Trajectory(document, reading).transcript(source.stem)
            except InvalidInput as error:
                yield Diagnostic("problem", f"invalid trajectory: {error}", document.where)
                continue
            yield from read_transcript(transcript, reading)


@final
class _Trajectory:
    """A trajectory, and those of the subagents in it."""

    def __init__(self, document: Document, reading: Reading) -> None:
        if "steps" not in document.members:
            raise InvalidInput("it lacks steps")
        self._document = document
        self._reading = reading
        self._session = document.value("session_id", str)
        self._open: set[str] = set()
        self._helpers = list(document.inner("subagent_trajectories"))
        self._names = [
            _agent(one).name or f"subagent-{n}" for n, one in enumerate(self._helpers, 1)
        ]

    def transcript(self, name: str) -> Transcript:
        """The session that it is.

        Args:
            name: the name of the file.

        Raises:
            InvalidInput: it is not a trajectory.
        """
        agent, document = _agent(self._document), self._document
        models = {AGENT: agent.model_name}
        models.update(
            (helper, _agent(one).model_name)
            for helper, one in zip(self._names, self._helpers, strict=True)
        )
        helpers = (ModelUse(name=helper) for helper in self._names)
        schema = document.value("schema_version", str)
        return Transcript(
            session=self._session or f"{name}-{document.digest()}",
            format=_NAME,
            where=document.where,
            entries=self._entries(),
            participants=Participants((ModelUse(), *helpers), (HUMAN, AGENT)),
            start=self._start(),
            models=models,
            policies={AGENT: agent.name},
            config={_NAME: {"schema": schema, "agent_version": agent.version}},
        )

    def _start(self) -> float | None:
        for data in self._document.elements("steps"):
            try:
                time = seconds_of(decode(data, _Step).timestamp, self._reading.zone)
            except InvalidInput:
                continue  # it is reported when it is read
            if time is not None:
                return time
        return None

    def _entries(self) -> Iterator[Entry | Diagnostic]:
        counted = False
        for found in self._acted():
            yield found
            steps = () if isinstance(found, Diagnostic) else found.steps
            counted = counted or any(isinstance(step, ModelUse) for step in steps)
        totals = self._document.value("final_metrics", _Totals)
        if totals is not None:  # they are written at the end of a run
            used = () if counted else tuple(_sum(totals))
            yield Entry("total", self._document.where, None, (*used, Ending()))

    def _acted(self) -> Iterator[Entry | Diagnostic]:
        """The steps in order, those of a subagent behind the step that refers to it."""
        left = dict(enumerate(self._helpers))
        for number, data in enumerate(self._document.elements("steps"), start=1):
            found = self._entry(self._document, number, data, None)
            yield found
            if left and not isinstance(found, Diagnostic):
                step = decode(data, _Step)
                for index in [n for n, one in left.items() if _refers(step, one)]:
                    yield from self._helped(index, left.pop(index))
        for index, helper in left.items():
            yield from self._helped(index, helper)

    def _helped(self, index: int, helper: Document) -> Iterator[Entry | Diagnostic]:
        """The entries of a subagent."""
        for number, data in enumerate(helper.elements("steps"), start=1):
            found = self._entry(helper, number, data, self._names[index])
            key = f"subagent-{index + 1}-{number}"
            yield found if isinstance(found, Diagnostic) else found._replace(number=key)

    def _entry(
        self, document: Document, number: int, data: bytes, name: str | None
    ) -> Entry | Diagnostic:
        where = f"{document.where}, step {number}"
        try:
            step = decode(data, _Step)
            steps = tuple(_steps(step, data, name, self._open))
        except InvalidInput as error:
            return Diagnostic("problem", f"invalid step: {error}", where, self._session)
        return Entry(number, where, seconds_of(step.timestamp, self._reading.zone), steps)


def _agent(document: Document) -> _Agent:
    return document.value("agent", _Agent) or _Agent()


def _refers(step: _Step, helper: Document) -> bool:
    """Whether a step's results refer to a subagent's trajectory."""
    own = {helper.value(key, str) for key in ("trajectory_id", "session_id")} - {None}
    for result in step.observation.results if step.observation is not None else ():
        named = result.subagent_trajectory_ref or []
        for one in named if isinstance(named, list) else [named]:
            if {one.trajectory_id, one.session_id} & own:
                return True
    return False


def _sum(totals: _Totals) -> Iterator[Step]:
    tokens = Tokens(
        prompt=totals.total_prompt_tokens,
        completion=totals.total_completion_tokens,
        cached=totals.total_cached_tokens,
    )
    if tokens != Tokens():
        yield ModelUse(tokens=tokens, cost=totals.total_cost_usd, purpose="act (all calls)")


def _steps(step: _Step, data: bytes, name: str | None, open_calls: set[str]) -> Iterator[Step]:
    """The steps of a step.

    Args:
        step: the step of a trajectory.
        data: the same as it is in the source.
        name: the name of a subagent; None for the main one.
        open_calls: ids of calls without a result; brought up to date.
    """
    side = _SIDES.get(step.source)
    if side is None:
        yield ForeignEntry(f"{_NAME}.{step.source}", data)
        return
    if name is not None and side == HUMAN:
        side = "system"  # a subagent's task, which another agent set
    if step.metrics is not None and not step.is_copied_context:
        yield _used(step.metrics, step.model_name, name)
    if step.reasoning_content:
        yield Reasoning(step.reasoning_content, name)
    text = _text(step.message)
    results = step.observation.results if step.observation is not None else []
    if side == HUMAN and any(_text(result.content) == text for result in results):
        text = ""  # a tool said it
    if text.strip():
        yield Utterance(side, name if side == AGENT else None, text)
    calls = step.tool_calls or []
    for call in calls:
        given = call.arguments if isinstance(call.arguments, Mapping) else {}
        raw = None if isinstance(call.arguments, Mapping) else _text(call.arguments) or None
        yield ToolCall(AGENT, name, call.tool_call_id, call.function_name, given, raw)
        open_calls.add(call.tool_call_id)
    yield from _results(calls, results, open_calls)


def _results(
    calls: Sequence[_Call], results: Sequence[_Result], open_calls: set[str]
) -> Iterator[Step]:
    named = {result.source_call_id for result in results}
    waiting = [call.tool_call_id for call in calls if call.tool_call_id not in named]
    for result in results:
        content = result.content if isinstance(result.content, Mapping) else _text(result.content)
        call = result.source_call_id
        if call is None and waiting:
            call = waiting.pop(0)
        if call in open_calls:
            open_calls.discard(str(call))
            yield ToolResult(str(call), content)
        elif content:
            yield Utterance("system", None, _text(result.content))
        if result.subagent_trajectory_ref:
            yield Omission("a reference to the trajectory of a subagent")


def _used(metrics: _Metrics, model: str | None, name: str | None) -> ModelUse:
    tokens = Tokens(
        prompt=metrics.prompt_tokens,
        completion=metrics.completion_tokens,
        cached=metrics.cached_tokens,
    )
    return ModelUse(model=model, tokens=tokens, cost=metrics.cost_usd, name=name)


def _text(content: JSON) -> str:
    """The text of a message, of its parts, or of a result."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(_part(part) for part in content if isinstance(part, Mapping))
    return msgspec.json.encode(content).decode()


def _part(part: Mapping[str, JSON]) -> str:
    """The text of a part; a mark such as ``[image]`` for any other."""
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part.get('type', 'part')}]"
