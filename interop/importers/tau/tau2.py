"""Results of τ²-bench: one file with all simulations, or one of results beside a file for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, CloseReason, ModelCalled, SessionOpened, Tokens, UtilityScored
from ....engine.records import ENVIRONMENT
from ..chat.files import stamp_of, usage_of
from ..chat.steps import Item
from ..conversation.builder import ConversationBuilder
from ..conversation.cast import Cast
from ..conversation.numbers import amount_of
from ..conversation.steps import AGENT, HUMAN, Ending, ToolResult, Utterance
from ..json_files import decode, load, pieces_of, read_bytes
from ..protocol import Found, Reading, Remark
from ..timestamps import seconds_of, zone_name
from ..trace_builder import TraceBuilder
from .common import (
    SATISFIED,
    SCORER,
    SIMULATED,
    Turn,
    rated,
    reward_of,
    turns_of,
    without_policy,
)

__all__ = ("DIRECTORY", "RESULTS", "read_results", "read_simulations")

RESULTS: Final = "results.json"
"""What the file of results is called, where each simulation has its own."""
DIRECTORY: Final = "simulations"
"""Where those are."""

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
    """The simulations of a file of results, which may lie beside it.

    Raises:
        InvalidInput: it cannot be read.
    """
    results = load(read_bytes(path), _Results, str(path))
    about = _About(info=results.info, tasks={str(task.id): task for task in results.tasks})
    for number, raw in enumerate(results.simulations, start=1):
        yield from _simulation(bytes(raw), f"{path}, simulation {number}", about, reading)
    beside = path.parent / DIRECTORY
    if not results.simulations and beside.is_dir():
        for file in sorted(beside.glob("*.json")):
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
        yield Remark("problem", f"no simulation of τ²-bench: {error}", where)
        return
    if found.messages is None:
        yield Remark("problem", "a simulation without messages: it was of speech", where)
        return
    name = found.id or codec.digest(found.messages)[:12]
    builder = TraceBuilder(f"tau-{name}")
    turns: list[Turn] = []
    for turn in turns_of(list(_flat(found.messages)), where, builder.session):
        if isinstance(turn, Remark):
            yield turn
        else:
            turns.append(_marked(turn))
    policy, turns_after = without_policy(turns)
    # Agents may be on their own; then there are messages, and none of a user.
    sides = (AGENT,) if turns_after else (AGENT, HUMAN)
    cast = Cast([step for turn in turns_after for step in turn.steps], sides)
    start = seconds_of(found.start_time, reading.zone)
    times = [seconds_of(stamp_of(turn.item), reading.zone) for turn in turns_after]
    start = next((time for time in (start, *times) if time is not None), None)
    opened = _opened(found, about, cast, policy, start is not None, reading)
    yield builder.put(opened, ENVIRONMENT, "environment", start or 0.0)
    talk = ConversationBuilder(builder, cast)
    for turn, time in zip(turns_after, times, strict=True):
        now = builder.time if time is None else time
        called = _called(turn.item, about.info)
        if called is not None:
            yield builder.put(called, *cast.of(str(turn.item["role"])), now)
        yield from talk.add(turn.number, turn.steps, now, f"{where}, message {turn.number}")
    end = seconds_of(found.end_time, reading.zone)
    ending = _ending(found, turns_after)
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


def _opened(
    found: _Simulation,
    about: _About,
    cast: Cast,
    policy: str | None,
    timed: bool,
    reading: Reading,
) -> SessionOpened:
    info, task = about.info, about.tasks.get(str(found.task_id))
    private: dict[str, JSON] = {}
    told = found.policy or policy or info.environment_info.policy
    if told:
        private[cast.of(AGENT)[0]] = {"policy": told}
    if task is not None and task.user_scenario is not None:
        private[cast.of(HUMAN)[0]] = {"scenario": task.user_scenario}
    if task is not None and task.evaluation_criteria is not None:
        private[SCORER.name] = {"criteria": task.evaluation_criteria}
    imported: dict[str, JSON] = {"format": "tau"}
    if timed:
        imported["zone"] = zone_name(reading.zone)
    participants = cast.participants(
        models={AGENT: info.agent_info.llm, HUMAN: info.user_info.llm},
        policies={
            AGENT: info.agent_info.implementation,
            HUMAN: info.user_info.implementation or SIMULATED,
        },
    )
    alone = all(one.role != "human" for one in participants)
    return SessionOpened(
        task=info.environment_info.domain_name,
        instance=str(found.task_id),
        participants=participants,
        clock="utc" if timed else "virtual",
        seed=found.seed,
        request=task.ticket if task is not None and alone else None,
        config={"imported": imported, "trial": found.trial, "utility": SCORER.name},
        private=private,
    )


def _called(item: Item, info: _Info) -> ModelCalled | None:
    """The model call behind a message, where anything is known of it."""
    # A model whose price is not known is written down as costing nothing.
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


def _ending(found: _Simulation, turns: Sequence[Turn]) -> Ending:
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
