"""The importer for trajectories of τ-bench and τ²-bench.

τ-bench writes a list of runs (``task_id``, ``reward``, ``traj``, ``trial``), whose ``traj`` are
chat messages; τ²-bench a file of results (``simulations``, with ``tasks`` and ``info``), or one
next to a directory ``simulations`` with a file for each. Users call tools there too. Information
for an agent, a user or the evaluation alone (policy, scenario, expected actions) is private to it.
The reward is the utility of the last round; a run that was aborted for external reasons has none.

Markers with which simulated users end a conversation, ``###STOP###`` for instance, stay in their
messages, and close the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import (
    JSON,
    CloseReason,
    ModelCalled,
    ScorerRef,
    SessionOpened,
    Tokens,
    UtilityScored,
)
from ...engine.records import ENVIRONMENT
from .chat import Item, stamp_of, steps_of, usage_of
from .conversation.builder import ConversationBuilder, Participants
from .conversation.numbers import amount_of, share_of
from .conversation.steps import (
    AGENT,
    HUMAN,
    Ending,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .json_files import Piece, decode, files_in, load, pieces_of, read_bytes
from .json_sniff import Shape, shape_of
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of, zone_name
from .trace_builder import TraceBuilder

__all__ = ("TauImporter",)

SCORER: Final = ScorerRef(name="tau", version="1", config=codec.digest({"value": "reward"}))
"""The reward as the benchmark computed it."""

SATISFIED: Final = "###STOP###"
"""Mark that the simulated user sends only when its goal is satisfied.

It has other marks for a transfer, and for cases outside its instructions.
"""

SIMULATED: Final = "simulated"
"""Policy of the user if the source names none: it is always a program."""


class Turn(NamedTuple):
    """A message: its place from 1, the original, and its steps."""

    number: int
    item: Item
    steps: Sequence[Step]


def turns_of(items: Sequence[Item], where: str, session: str) -> Iterator[Turn | Diagnostic]:
    """The messages of a run; a diagnostic if one is invalid."""
    for index, item in enumerate(items, start=1):
        try:
            yield Turn(index, item, list(steps_of(item)))
        except InvalidInput as error:
            place = f"{where}, message {index}"
            yield Diagnostic("problem", f"invalid message: {error}", place, session)


def without_policy(turns: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
    """The policy, which the agent was given as the first message; and the rest."""
    first = turns[0].steps if turns else ()
    if len(first) == 1 and isinstance(first[0], Utterance) and first[0].role == "system":
        return first[0].text, turns[1:]
    return None, turns


def rated(parts: Mapping[str, JSON]) -> dict[str, float | None]:
    """Named parts of a reward, those that are numbers."""
    return {
        name: share_of(value)
        for name, value in parts.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def reward_of(
    value: JSON, parts: Mapping[str, float | None], broken: str | None = None
) -> UtilityScored:
    """A reward as a utility; missing if the run broke off, or there is none in [0, 1]."""
    if broken is not None:
        return UtilityScored(scorer=SCORER, missing=broken)
    found = share_of(value)
    missing = None
    if found is None:
        said = msgspec.json.encode(value).decode()
        missing = "there is no reward" if value is None else f"the reward {said} is not in [0, 1]"
    return UtilityScored(scorer=SCORER, value=found, parts=parts, missing=missing)


# --- runs of τ-bench ------------------------------------------------------------------------------


_TOOLS: Final = "#Available tools"
_OUTPUT: Final = "API output: "
_RESPOND: Final = "respond"
_DOMAIN: Final = re.compile(r"#\s*(\w+)\s+agent\s+policy", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"(?P<agent>tool-calling|act|react|few-shot)-(?P<model>.+)-\d+(?:\.\d+)?_range_-?\d+--?\d+"
    r"_user-(?P<user>.+)-(?P<strategy>llm|react|verify|reflection)_\d+"
)
_ERRORS: Final = ("Error:", "Unknown action")


class _Run(msgspec.Struct):
    task_id: int | str
    reward: JSON
    traj: Sequence[Item]
    info: Mapping[str, JSON] = {}
    trial: int = 0


def read_runs(path: Path, reading: Reading) -> Iterator[Found]:
    """The runs in a file.

    Raises:
        InvalidInput: it cannot be read.
    """
    for piece in pieces_of(path):
        try:
            run = decode(piece.data, _Run)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid run of τ-bench: {error}", piece.where)
            continue
        yield from _read(run, piece, _NAMED.fullmatch(path.stem))


def _read(run: _Run, piece: Piece, named: re.Match[str] | None) -> Iterator[Found]:
    digest = codec.digest(run.traj)[:12]
    first = run.traj[0].get("content") if run.traj else None
    domain = _domain(first if isinstance(first, str) else "")
    builder = TraceBuilder(f"tau-{domain}-{run.task_id}-{run.trial}-{digest}")
    turns: list[Turn] = []
    for turn in turns_of(run.traj, piece.where, builder.session):
        if isinstance(turn, Diagnostic):
            yield turn
        else:
            turns.append(turn)
    written = _is_written(run, turns)
    policy, turns_after = without_policy(turns)
    spoken = list(map(_outcomes, _read_calls(turns_after) if written else turns_after))
    participants = Participants([step for turn in spoken for step in turn.steps], (HUMAN, AGENT))
    yield builder.put(
        _opened(run, f"tau-{domain}", participants, policy, named), ENVIRONMENT, "environment", 0.0
    )
    talk = ConversationBuilder(builder, participants)
    for turn in spoken:
        yield from talk.add(turn.number, turn.steps, 0.0, f"{piece.where}, message {turn.number}")
    cost = amount_of(run.info.get("user_cost"))
    if cost:
        called = ModelCalled(
            model=named["user"] if named else "unknown",
            purpose="act (all calls)",
            request="",
            cost=cost,
        )
        yield builder.put(called, *participants.of(HUMAN), 0.0)
    ending = _ending(run, spoken)
    yield from talk.add(len(run.traj) + 1, [ending], 0.0, piece.where)
    broken = ending.detail if ending.reason == "failed" else None
    yield builder.measure(reward_of(run.reward, _parts(run.info), broken))


def _domain(policy: str) -> str:
    found = _DOMAIN.search(policy)
    return found.group(1).lower() if found else "bench"


def _opened(
    run: _Run,
    task: str,
    participants: Participants,
    policy: str | None,
    named: re.Match[str] | None,
) -> SessionOpened:
    private: dict[str, JSON] = {}
    held = run.info.get("task")
    if isinstance(held, Mapping):
        told = {key: held[key] for key in ("user_id", "instruction") if key in held}
        private[participants.of(HUMAN)[0]] = told
        private[SCORER.name] = {key: held[key] for key in ("actions", "outputs") if key in held}
    if policy is not None:
        private[participants.of(AGENT)[0]] = {"policy": policy}
    return SessionOpened(
        task=task,
        instance=str(run.task_id),
        problem=str(run.task_id),
        participants=participants.listed(
            models={AGENT: named["model"], HUMAN: named["user"]} if named else {},
            policies={
                AGENT: named["agent"] if named else None,
                HUMAN: named["strategy"] if named else SIMULATED,
            },
        ),
        clock="virtual",
        config={
            "imported": {"format": "tau"},
            "trial": run.trial,
            "utility": SCORER.name,
        },
        private=private,
    )


def _ending(run: _Run, turns: Sequence[Turn]) -> Ending:
    error = run.info.get("error")
    if error is not None:
        return Ending("failed", ENVIRONMENT, f"the run broke off: {error}")
    if run.info.get("reward_info") is None:
        return Ending("limit", ENVIRONMENT, "nobody ended it: a limit on steps, as it seems")
    last = turns[-1].steps[-1] if turns and turns[-1].steps else None
    if isinstance(last, Utterance) and last.role == HUMAN:
        satisfied = SATISFIED in last.text
        return Ending("finished", HUMAN, SATISFIED) if satisfied else Ending("ended", HUMAN)
    source = run.info.get("source")
    return Ending("ended", AGENT, source if isinstance(source, str) else "")


def _parts(info: Mapping[str, JSON]) -> dict[str, float | None]:
    reward = info.get("reward_info")
    held = reward.get("info") if isinstance(reward, Mapping) else None
    return rated(held) if isinstance(held, Mapping) else {}


def _outcomes(turn: Turn) -> Turn:
    """Tells results that are errors, by how the environment words them."""
    steps = [
        ToolResult(step.call, step.output, step.output)
        if isinstance(step, ToolResult)
        and isinstance(step.output, str)
        and step.output.startswith(_ERRORS)
        else step
        for step in turn.steps
    ]
    return turn._replace(steps=steps)


# --- calls that are written in messages -----------------------------------------------------------


def _is_written(run: _Run, turns: Sequence[Turn]) -> bool:
    first = run.traj[0].get("content") if run.traj else None
    calls = any(isinstance(step, ToolCall) for turn in turns for step in turn.steps)
    return isinstance(first, str) and _TOOLS in first and not calls


def _read_calls(turns: Sequence[Turn]) -> Iterator[Turn]:
    """The same messages, with calls and results separated from texts."""
    called = False
    for turn in turns:
        said = next((step for step in turn.steps if isinstance(step, Utterance)), None)
        if said is None:
            yield turn
        elif said.role == AGENT:
            steps = list(_spoken(said))
            called = isinstance(steps[-1], ToolCall)
            yield turn._replace(steps=steps)
        elif called and said.text.startswith(_OUTPUT):
            yield turn._replace(steps=[ToolResult("", said.text.removeprefix(_OUTPUT))])
        else:
            yield turn


def _spoken(said: Utterance) -> Iterator[Step]:
    """A thought, if there is one, and then a call or something said to the user."""
    before, _, action = said.text.rpartition("Action:")
    thought = before.strip().removeprefix("Reasoning:").strip()
    if thought:
        yield Reasoning(thought)
    text = action.strip()
    try:
        held = decode(text.encode(), dict[str, JSON])
    except InvalidInput:
        yield Utterance(said.role, said.name, text)
        return
    name, arguments = held.get("name"), held.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        yield Utterance(said.role, said.name, text)
    elif name == _RESPOND:
        content = arguments.get("content")
        yield Utterance(said.role, said.name, content if isinstance(content, str) else text)
    else:
        yield ToolCall(said.role, said.name, "", name, arguments, None)


# --- results of τ²-bench --------------------------------------------------------------------------


RESULTS: Final = "results.json"
"""Name of the file of results, if each simulation has its own file."""
DIRECTORY: Final = "simulations"
"""The directory of these files."""

_USER_STOP: Final = "user_stop"
_ENDINGS: Final[Mapping[str, tuple[CloseReason, str]]] = {
    _USER_STOP: ("ended", HUMAN),
    "agent_stop": ("ended", AGENT),
    "max_steps": ("limit", ENVIRONMENT),
    "timeout": ("limit", ENVIRONMENT),
    "too_many_errors": ("limit", ENVIRONMENT),
    "agent_error": ("failed", AGENT),
    "user_error": ("failed", HUMAN),
}
_BROKEN: Final = frozenset({"infrastructure_error", "context_window_exceeded", "unexpected_error"})
"""Why there is nothing to evaluate; the benchmark leaves the first two out of its averages too."""


class _Side(msgspec.Struct):
    implementation: str | None = None
    llm: str | None = None


class _Domain(msgspec.Struct):
    domain_name: str = "tau2"
    policy: str | None = None


class _Info(msgspec.Struct):
    agent_info: _Side = msgspec.field(default_factory=_Side)
    user_info: _Side = msgspec.field(default_factory=_Side)
    environment_info: _Domain = msgspec.field(default_factory=_Domain)


class _Task(msgspec.Struct):
    id: str | int
    user_scenario: JSON = None
    evaluation_criteria: JSON = None
    ticket: str | None = None


class _Results(msgspec.Struct):
    info: _Info = msgspec.field(default_factory=_Info)
    tasks: Sequence[_Task] = ()
    simulations: Sequence[msgspec.Raw] = ()


class _Simulation(msgspec.Struct):
    task_id: str | int
    id: str = ""
    start_time: str | None = None
    end_time: str | None = None
    termination_reason: str | None = None
    reward_info: Mapping[str, JSON] | None = None
    messages: Sequence[Item] | None = None
    trial: int | None = None
    seed: int | None = None
    policy: str | None = None


class _About(msgspec.Struct):
    info: _Info
    tasks: Mapping[str, _Task]


def read_results(path: Path, reading: Reading) -> Iterator[Found]:
    """The simulations of a file of results, which may be separate files next to it.

    Raises:
        InvalidInput: it cannot be read.
    """
    results = load(read_bytes(path), _Results, str(path))
    about = _About(info=results.info, tasks={str(task.id): task for task in results.tasks})
    for number, raw in enumerate(results.simulations, start=1):
        yield from _simulation(bytes(raw), f"{path}, simulation {number}", about, reading)
    folder = path.parent / DIRECTORY
    if not results.simulations and folder.is_dir():
        for file in files_in(folder, "*.json", within=path.parent):
            yield from _simulation(read_bytes(file), str(file), about, reading)


def read_simulations(path: Path, reading: Reading) -> Iterator[Found]:
    """The simulations in a file on their own, without what the results say of them all.

    Raises:
        InvalidInput: it cannot be read.
    """
    about = _About(info=_Info(), tasks={})
    for piece in pieces_of(path):
        yield from _simulation(bytes(piece.data), piece.where, about, reading)


def _simulation(data: bytes, where: str, about: _About, reading: Reading) -> Iterator[Found]:
    try:
        found = decode(data, _Simulation)
    except InvalidInput as error:
        yield Diagnostic("problem", f"invalid simulation of τ²-bench: {error}", where)
        return
    if found.messages is None:
        yield Diagnostic("problem", "a simulation without messages: it was of speech", where)
        return
    name = found.id or codec.digest(found.messages)[:12]
    builder = TraceBuilder(f"tau-{name}")
    turns: list[Turn] = []
    for turn in turns_of(list(_flat(found.messages)), where, builder.session):
        if isinstance(turn, Diagnostic):
            yield turn
        else:
            turns.append(_marked(turn))
    policy, turns_after = without_policy(turns)
    # Agents may be on their own; then there are messages, and none of a user.
    sides = (AGENT,) if turns_after else (AGENT, HUMAN)
    participants = Participants([step for turn in turns_after for step in turn.steps], sides)
    start = seconds_of(found.start_time, reading.zone)
    times = [seconds_of(stamp_of(turn.item), reading.zone) for turn in turns_after]
    start = next((time for time in (start, *times) if time is not None), None)
    opened = _opened_2(found, about, participants, policy, start is not None, reading)
    yield builder.put(opened, ENVIRONMENT, "environment", start or 0.0)
    talk = ConversationBuilder(builder, participants)
    for turn, time in zip(turns_after, times, strict=True):
        now = builder.time if time is None else time
        called = _called(turn.item, about.info)
        if called is not None:
            yield builder.put(called, *participants.of(str(turn.item["role"])), now)
        yield from talk.add(turn.number, turn.steps, now, f"{where}, message {turn.number}")
    end = seconds_of(found.end_time, reading.zone)
    ending = _ending_2(found, turns_after)
    yield from talk.add(
        len(found.messages) + 1, [ending], builder.time if end is None else end, where
    )
    yield builder.measure(_reward(found, ending))


def _flat(messages: Sequence[Item]) -> Iterator[Item]:
    """The messages, with results that came together one by one, and speech by its script."""
    for message in messages:
        several = message.get("tool_messages")
        if isinstance(several, Sequence) and not isinstance(several, str):
            yield from (one for one in several if isinstance(one, Mapping))
        elif message.get("is_audio"):
            yield {**message, "content": message.get("audio_script_gold") or "[audio]"}
        else:
            yield message


def _marked(turn: Turn) -> Turn:
    """Results with the ids of their calls, and whether they are errors."""
    item = turn.item
    if item.get("role") != "tool":
        return turn
    content, call = item.get("content"), item.get("id")
    error = None
    if item.get("error") is True:
        error = content if isinstance(content, str) and content else "it failed"
    return turn._replace(steps=[ToolResult(call if isinstance(call, str) else "", content, error)])


def _opened_2(
    found: _Simulation,
    about: _About,
    participants: Participants,
    policy: str | None,
    timed: bool,
    reading: Reading,
) -> SessionOpened:
    info, task = about.info, about.tasks.get(str(found.task_id))
    private: dict[str, JSON] = {}
    told = found.policy or policy or info.environment_info.policy
    if told:
        private[participants.of(AGENT)[0]] = {"policy": told}
    if task is not None and task.user_scenario is not None:
        private[participants.of(HUMAN)[0]] = {"scenario": task.user_scenario}
    if task is not None and task.evaluation_criteria is not None:
        private[SCORER.name] = {"criteria": task.evaluation_criteria}
    imported: dict[str, JSON] = {"format": "tau"}
    if timed:
        imported["zone"] = zone_name(reading.zone)
    everyone = participants.listed(
        models={AGENT: info.agent_info.llm, HUMAN: info.user_info.llm},
        policies={
            AGENT: info.agent_info.implementation,
            HUMAN: info.user_info.implementation or SIMULATED,
        },
    )
    alone = all(one.role != "human" for one in everyone)
    return SessionOpened(
        task=info.environment_info.domain_name,
        instance=str(found.task_id),
        problem=str(found.task_id),
        participants=everyone,
        clock="utc" if timed else "virtual",
        seed=found.seed,
        request=task.ticket if task is not None and alone else None,
        config={"imported": imported, "trial": found.trial, "utility": SCORER.name},
        private=private,
    )


def _called(item: Item, info: _Info) -> ModelCalled | None:
    """The model call behind a message, if anything is known of it."""
    # The benchmark records models without a known price as costing 0.
    usage, cost = usage_of(item.get("usage")), amount_of(item.get("cost")) or None
    if usage is None and cost is None:
        return None
    side = info.agent_info if item.get("role") == AGENT else info.user_info
    return ModelCalled(
        model=side.llm or "unknown",
        purpose="act",
        request="",
        tokens=usage or Tokens(),
        latency=amount_of(item.get("generation_time_seconds")) or 0.0,
        cost=cost,
    )


def _ending_2(found: _Simulation, turns: Sequence[Turn]) -> Ending:
    why = found.termination_reason or "nothing says why it ended"
    reason, by = _ENDINGS.get(why, ("failed", ENVIRONMENT))
    if why == _USER_STOP and _is_satisfied(turns):
        reason = "finished"
    return Ending(reason, by, why)


def _is_satisfied(turns: Sequence[Turn]) -> bool:
    """Whether the user's last words say that its goal is satisfied."""
    said = [step for turn in turns for step in turn.steps if isinstance(step, Utterance)]
    return bool(said) and said[-1].role == HUMAN and SATISFIED in said[-1].text


def _reward(found: _Simulation, ending: Ending) -> UtilityScored:
    held = found.reward_info or {}
    parts = held.get("reward_breakdown")
    broken = f"the run broke off: {ending.detail}" if ending.detail in _BROKEN else None
    return reward_of(held.get("reward"), rated(parts) if isinstance(parts, Mapping) else {}, broken)


# --- the importer for trajectories of τ-bench and τ²-bench ----------------------------------------


_NAME: Final = "tau"
_RUN: Final = frozenset({"task_id", "reward", "traj"})
_SIMULATION: Final = frozenset({"task_id", "messages", "termination_reason"})
_TICKS: Final = frozenset({"task_id", "ticks", "termination_reason"})


@final
class TauImporter:
    """Reads trajectories of τ-bench and τ²-bench."""

    name = _NAME
    about = "trajectories of τ-bench and results of τ²-bench"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file holds runs or results, or a directory results in several files."""
        if source.is_dir():
            return (source / RESULTS).is_file() and (source / DIRECTORY).is_dir()
        return shape is not None and (_is_run(shape) or _is_results(shape) or _is_simulation(shape))

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all runs.

        Raises:
            InvalidInput: there are none, or a file cannot be read.
        """
        if source.is_dir():
            if not self.recognises(source, None):
                raise InvalidInput(
                    f"{source} is not a result of τ²-bench: it lacks {RESULTS} with a directory "
                    f"{DIRECTORY}"
                )
            yield from read_results(source / RESULTS, reading)
            return
        shape = shape_of(source)
        if shape is not None and _is_run(shape):
            yield from read_runs(source, reading)
        elif shape is not None and _is_results(shape):
            yield from read_results(source, reading)
        elif shape is not None and _is_simulation(shape):
            yield from read_simulations(source, reading)
        else:
            raise InvalidInput(
                f"{source} is a result of neither τ-bench (a list of runs with task_id, reward and traj) nor "
                "τ²-bench (results with simulations)"
            )


def _is_run(shape: Shape) -> bool:
    return shape.keys >= _RUN


def _is_results(shape: Shape) -> bool:
    return (
        shape.form == "object"
        and "info" in shape.keys
        and bool(shape.keys & {"simulations", "simulation_index", "tasks"})
    )


def _is_simulation(shape: Shape) -> bool:
    return shape.keys >= _SIMULATION or shape.keys >= _TICKS
