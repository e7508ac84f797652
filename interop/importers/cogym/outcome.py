"""How a session of Collaborative Gym ended: why, how good the result was, and how many tokens it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import (
    JSON,
    ModelCalled,
    Participant,
    Role,
    ScorerRef,
    SessionClosed,
    Tokens,
    UtilityScored,
)
from ..conversation.numbers import count_of, share_of
from ..json_files import files_in
from ..protocol import Diagnostic
from .files import Run, results_of
from .sessions import role_of

__all__ = (
    "PARTS",
    "RATING",
    "SCORER",
    "Info",
    "calls_of",
    "closing",
    "infos_of",
    "participants_of",
    "parts_of",
    "persona_of",
    "score_of",
)

_PERFORMANCE: Final = "task_performance.json"
RATING: Final = "performance_rating"
"""The key of a performance in [0, 1]."""

PARTS: Final = {
    "commonsense_pass_rate": "commonsense_evaluation",
    "preference_pass_rate": "preference_evaluation",
}
"""By name of a part of it, the key of the items that it comes from."""

SCORER: Final = "cogym"
"""The scorer's name; version 1 is the final performance, version 2 that of each round."""

_FINAL: Final = ScorerRef(
    name=SCORER, version="1", config=codec.digest({"value": RATING, "parts": sorted(PARTS)})
)
_STEPS: Final = 30  # acts of one side after which the published experiments end a session


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _InfoFile(msgspec.Struct):
    lm: str | None = None
    planning_lm: str | None = None
    executing_lm: str | None = None
    token_usage: Mapping[str, int | _Usage | None] = {}
    persona: Mapping[str, bool] = {}


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a member's own ``info.json``.

    Attributes:
        member: its role, as the log has it.
        policy: name of the directory.
        persona: the persona of a simulated user, in a word.
        usage: for each of its models, the purpose, name and total tokens.
    """

    member: str
    policy: str
    persona: str | None
    usage: tuple[tuple[str, str, Tokens], ...]

    @property
    def model(self) -> str | None:
        """Its model, or all of them."""
        return " and ".join(dict.fromkeys(name for _, name, _ in self.usage)) or None


def infos_of(run: Run, members: tuple[str, ...]) -> Iterator[Info | Diagnostic]:
    """The known facts about the members, from files in the log's directory.

    A directory is the member's of the same name; a simulated user's directory has another name, and
    belongs to the only human.
    """
    if run.directory is None:
        return
    humans = [name for name in members if role_of(name) == "human"]
    for path in files_in(run.directory, "*/info.json"):
        name = path.parent.name
        member = name if name in members else None
        if member is None and "user" in name and len(humans) == 1:
            member = humans[0]
        if member is None:
            yield Diagnostic(
                "difference", "of a member that is not in the log; left out", str(path)
            )
            continue
        try:
            yield _info(path, member)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid information on a member: {error}", str(path))


def _info(path: Path, member: str) -> Info:
    try:
        held = msgspec.convert(results_of(path), _InfoFile)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error)) from error
    models = (
        ("lm", "act", held.lm),
        ("planning_lm", "plan", held.planning_lm),
        ("executing_lm", "act", held.executing_lm),
    )
    usage = [
        (f"{purpose} (all calls)", model, _tokens(held.token_usage, key))
        for key, purpose, model in models
        if model is not None
    ]
    return Info(
        member=member,
        policy=path.parent.name,
        persona=persona_of(held.persona) if held.persona else None,
        usage=tuple(usage),
    )


def _tokens(counted: Mapping[str, int | _Usage | None], key: str) -> Tokens:
    """The tokens of one model; a member's only model may be counted without its name."""
    found = counted.get(key)
    if not isinstance(found, _Usage):
        prompt, completion = counted.get("prompt_tokens"), counted.get("completion_tokens")
        found = _Usage(
            prompt_tokens=count_of(prompt),
            completion_tokens=count_of(completion),
        )
    return Tokens(prompt=found.prompt_tokens, completion=found.completion_tokens)


def persona_of(traits: Mapping[str, bool]) -> str:
    """A persona in a word: the habits it has without being asked."""
    feedback, action = traits.get("proactive_feedback"), traits.get("proactive_action")
    if feedback:
        return "proactive" if action else "feedback-only"
    return "action-only" if action else "lazy"


def calls_of(info: Info) -> Iterator[ModelCalled]:
    """The tokens of a member: of its calls only the sum is known."""
    for purpose, model, tokens in info.usage:
        yield ModelCalled(model=model, purpose=purpose, request="", tokens=tokens)


def score_of(run: Run) -> tuple[UtilityScored | None, Diagnostic | None]:
    """The final performance; None if the result is missing, with a diagnostic if it is unreadable."""
    if run.directory is None:
        return None, None
    path = run.directory / _PERFORMANCE
    try:
        held = results_of(path)
    except InvalidInput as error:
        return None, Diagnostic("problem", f"invalid performance: {error}", str(path))
    if held is None:
        return None, None
    value = share_of(held.get(RATING))
    missing = None
    if value is None:
        said = held.get(RATING)
        missing = f"{RATING} is {said!r}, and not in [0, 1]" if said is not None else None
        missing = missing or f"there is no {RATING}"
    return UtilityScored(scorer=_FINAL, value=value, parts=parts_of(held), missing=missing), None


def parts_of(held: Mapping[str, JSON]) -> Mapping[str, float | None]:
    """The named parts of a performance; an evaluation that broke off left nothing, and no item that
    failed.
    """
    return {
        name: share_of(held[name]) if held.get(source) else None
        for name, source in PARTS.items()
        if name in held
    }


def closing(
    finisher: str | None, evaluated: bool, acts: Mapping[Role, int]
) -> SessionClosed | None:
    """How a session ended; None if nothing says that it did.

    Args:
        finisher: the member whose last act finished it, if any.
        evaluated: its result was evaluated, which is done at the end only.
        acts: how many acts of humans and of agents there were.
    """
    if finisher is not None:
        satisfied = role_of(finisher) == "human"  # an agent's word says nothing of the human's mind
        return SessionClosed(reason="finished" if satisfied else "ended", by=finisher)
    if not evaluated:
        return None
    most = max(acts.values())
    counts = f"{acts['agent']} acts of agents, {acts['human']} of humans"
    if most >= _STEPS:
        detail = f"a limit on acts, as it seems: {counts}"
        return SessionClosed(reason="limit", by="environment", detail=detail)
    detail = f"nobody finished it; idle for too long, as it seems: {counts}"
    return SessionClosed(reason="stalled", by="environment", detail=detail)


def participants_of(members: tuple[str, ...], infos: Mapping[str, Info]) -> tuple[Participant, ...]:
    """The participants."""
    found: list[Participant] = []
    for name in members:
        info = infos.get(name)
        found.append(
            Participant(
                name=name,
                role=role_of(name),
                policy=info.policy if info else None,
                model=info.model if info else None,
                persona=info.persona if info else None,
            )
        )
    return tuple(found)
