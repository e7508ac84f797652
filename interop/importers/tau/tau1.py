"""Runs of τ-bench: a list of objects with ``task_id``, ``trial``, ``reward``, ``info`` and ``traj``.

Agents of the kinds ``act`` and ``react`` call no tools: they write the call into their message, and
its result comes back as one of the user's, which begins with ``API output:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, ModelCalled, SessionOpened
from ....engine.records import ENVIRONMENT
from ..chat.steps import Item
from ..conversation.builder import ConversationBuilder
from ..conversation.cast import Cast
from ..conversation.numbers import amount_of
from ..conversation.steps import (
    AGENT,
    HUMAN,
    Ending,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from ..json_files import Piece, decode, pieces_of
from ..protocol import Found, Reading, Remark
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

__all__ = ("read_runs",)

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
            yield Remark("problem", f"no run of τ-bench: {error}", piece.where)
            continue
        yield from _read(run, piece, _NAMED.fullmatch(path.stem))


def _read(run: _Run, piece: Piece, named: re.Match[str] | None) -> Iterator[Found]:
    digest = codec.digest(run.traj)[:12]
    first = run.traj[0].get("content") if run.traj else None
    domain = _domain(first if isinstance(first, str) else "")
    builder = TraceBuilder(f"tau-{domain}-{run.task_id}-{run.trial}-{digest}")
    turns: list[Turn] = []
    for turn in turns_of(run.traj, piece.where, builder.session):
        if isinstance(turn, Remark):
            yield turn
        else:
            turns.append(turn)
    written = _is_written(run, turns)
    policy, turns_after = without_policy(turns)
    spoken = list(map(_outcomes, _read_calls(turns_after) if written else turns_after))
    cast = Cast([step for turn in spoken for step in turn.steps], (HUMAN, AGENT))
    yield builder.put(
        _opened(run, f"tau-{domain}", cast, policy, named), ENVIRONMENT, "environment", 0.0
    )
    talk = ConversationBuilder(builder, cast)
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
        yield builder.put(called, *cast.of(HUMAN), 0.0)
    ending = _ending(run, spoken)
    yield from talk.add(len(run.traj) + 1, [ending], 0.0, piece.where)
    broken = ending.detail if ending.reason == "failed" else None
    yield builder.measure(reward_of(run.reward, _parts(run.info), broken))


def _domain(policy: str) -> str:
    found = _DOMAIN.search(policy)
    return found.group(1).lower() if found else "bench"


def _opened(
    run: _Run, task: str, cast: Cast, policy: str | None, named: re.Match[str] | None
) -> SessionOpened:
    private: dict[str, JSON] = {}
    held = run.info.get("task")
    if isinstance(held, Mapping):
        told = {key: held[key] for key in ("user_id", "instruction") if key in held}
        private[cast.of(HUMAN)[0]] = told
        private[SCORER.name] = {key: held[key] for key in ("actions", "outputs") if key in held}
    if policy is not None:
        private[cast.of(AGENT)[0]] = {"policy": policy}
    return SessionOpened(
        task=task,
        instance=str(run.task_id),
        participants=cast.participants(
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
    """The same messages, with calls and results separated from what was said."""
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
