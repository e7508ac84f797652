"""Utility by a rubric, judged by a model: of each snapshot, or of a conversation round by round.

A rating that the reply does not clearly state is missing, with the reason, and never guessed. Every
reply is recorded in the scorer's own stream, so that a replay calls no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, final

import msgspec

from ...engine.errors import InvalidInput, ModelRefused
from ...engine.events import (
    ActionTaken,
    ApprovalAsked,
    MessageSent,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.files import Contents, output_text
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import (
    ModelConversation,
    ModelUse,
    UnreadableReply,
    reply_text,
)
from ...engine.models.prompting.parse_rating import read_ratings
from ...engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN
from ...engine.models.prompting.prompts import load_prompts
from ...engine.models.protocol import Message, ModelReply
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, Rounds
from ...engine.scorers.protocol import Cost, Measurement, Scorer, SessionScorer
from .criterion import Criterion
from .model_judge import shortened
from .model_scorer import ModelScorer, version_of
from .utility import NO_OPENING, reference

__all__ = ("conversation_rubric", "rubric_utility")

_VERSION: Final = "1"
_PROMPTS: Final = load_prompts(__package__)
_NOTHING: Final = "(nothing)"
_LOWEST, _HIGHEST = 1, 5


def rubric_utility(
    criteria: Sequence[Criterion], models: Models, use: ModelUse, *, name: str = "rubric"
) -> Scorer:
    """The utility of each snapshot by a rubric, judged by a model.

    Each criterion is rated from 1 to 5, mapped to 0 to 1; the utility is their weighted mean. If a
    criterion has no clear rating, it is missing, and so is the utility: a mean over the others
    would not be comparable. The parts hold the ratings of the criteria.

    Args:
        criteria: the rubric.
        models: access to the model.
        use: which model, and how it is called.
        name: the name of the scorer.

    Raises:
        InvalidInput: no criterion, two of one name, or a name that no scorer can have.
    """
    return _scorer(criteria, models, use, name, _Snapshots)


def conversation_rubric(
    criteria: Sequence[Criterion],
    models: Models,
    use: ModelUse,
    *,
    rounds: Rounds = "handoff",
    name: str = "chat-rubric",
) -> Scorer:
    """The utility of a conversation without an output by a rubric, judged by a model.

    Whenever a round is over in which an agent acted, the model reads the conversation up to there,
    and rates each criterion as ``rubric_utility`` does. What the human says next is not part of it.

    Args:
        criteria: the rubric.
        models: access to the model.
        use: which model, and how it is called.
        rounds: how rounds are counted.
        name: the name of the scorer.

    Raises:
        InvalidInput: no criterion, two of one name, or a name that no scorer can have.
    """
    return _scorer(criteria, models, use, name, lambda judge: _Conversation(judge, rounds), rounds)


_Begin: TypeAlias = Callable[["_Judge"], SessionScorer]


def _scorer(
    criteria: Sequence[Criterion],
    models: Models,
    use: ModelUse,
    name: str,
    begin: _Begin,
    *more: Rounds,
) -> Scorer:
    names = [criterion.name.casefold() for criterion in criteria]
    if not names or len(set(names)) < len(names):
        raise InvalidInput("a rubric needs at least one criterion, each with a unique name")
    version = version_of(_VERSION, use, _PROMPTS.digest, list(criteria), *more)
    config = {"use": msgspec.to_builtins(use), "criteria": msgspec.to_builtins(list(criteria))}
    ref = reference(name, version, config)
    return ModelScorer(
        models, lambda caller: _Rubric(_Judge(ref, criteria, ModelConversation(caller, use)), begin)
    )


@final
class _Rubric:
    def __init__(self, judge: _Judge, begin: _Begin) -> None:
        self.ref = judge.ref
        self._judge = judge
        self._begin = begin

    def begin(self, session: str) -> SessionScorer:
        return self._begin(self._judge)


@final
class _Snapshots:
    """Scores each snapshot of humans and agents."""

    def __init__(self, judge: _Judge) -> None:
        self._judge = judge
        self._contents = Contents()

    def cost(self, record: Record, over: Round | None) -> Cost:
        return "waits" if record.kind == "SnapshotTaken" else "quick"

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        self._judge.look(record)
        event = record.event
        if not isinstance(event, SnapshotTaken) or record.role not in ("human", "agent"):
            return ()
        whole = self._contents.whole(event)
        scored = await self._judge.score(lambda tokens: shortened(output_text(whole), tokens))
        scored = msgspec.structs.replace(scored, snapshot=record.version)
        return (Measurement(scored, f"snapshot/{record.version}"),)


@final
class _Conversation:
    """Scores the conversation at the end of each round in which an agent acted."""

    def __init__(self, judge: _Judge, rounds: Rounds) -> None:
        self._judge = judge
        self.rounds: Rounds = rounds
        self._lines: list[str] = []

    def cost(self, record: Record, over: Round | None) -> Cost:
        return "waits" if over is not None and over.agent_acts else "quick"

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        if not over.agent_acts:
            return ()
        scored = await self._judge.score(self._told)
        scored = msgspec.structs.replace(
            scored, round=over.number, until=over.last_act or over.last, rounds=self.rounds
        )
        return (Measurement(scored, f"round/{over.number}"),)

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream == TRACE:
            self._judge.look(record)
            self._note(record)
        return ()

    def _note(self, record: Record) -> None:
        who = {"human": "Person", "agent": "Agent"}.get(record.role)
        event = record.event if who is not None else None
        if isinstance(event, MessageSent):
            self._lines.append(f"{who}: {event.text}")
        elif isinstance(event, ApprovalAsked):
            self._lines.append(f"{who} asks for approval: {event.question}")
        elif isinstance(event, ActionTaken):
            self._lines.append(f"{who} does: {event.name}")

    def _told(self, tokens: int) -> str:
        """The conversation so far; only its end if it is long."""
        text = "\n".join(self._lines)
        most = tokens * CHARACTERS_PER_TOKEN
        return text if len(text) <= most else f"(...)\n{text[-most:]}"


@final
class _Judge:
    """Asks a model to rate work by criteria.

    Attributes:
        ref: the scorer that it belongs to.
    """

    def __init__(
        self, ref: ScorerRef, criteria: Sequence[Criterion], conversation: ModelConversation
    ) -> None:
        self.ref = ref
        self._criteria = criteria
        self._conversation = conversation
        self._opened = False
        self._request = ""

    def look(self, record: Record) -> None:
        """Notes the request."""
        event = record.event
        if isinstance(event, SessionOpened):
            self._opened, self._request = True, event.request or ""
        elif isinstance(event, MessageSent) and record.role == "human":
            self._request = self._request or event.text

    async def score(self, work: Callable[[int], str]) -> UtilityScored:
        """The utility of the work, which is given in no more than a number of tokens."""
        why = NO_OPENING
        ratings: Mapping[str, int | None] = {}
        if self._opened:
            ratings, why = await self._ask(work)
        parts = {c.name: _share(ratings.get(c.name)) for c in self._criteria}
        rated = [(part, c.weight) for c in self._criteria if (part := parts[c.name]) is not None]
        whole = len(rated) == len(self._criteria)
        total = sum(weight for _, weight in rated)
        return UtilityScored(
            scorer=self.ref,
            value=sum(part * weight for part, weight in rated) / total if whole else None,
            parts=parts,
            missing=None if whole else why,
        )

    async def _ask(self, work: Callable[[int], str]) -> tuple[Mapping[str, int | None], str]:
        """The ratings by name of the criterion; and why others are missing."""
        names = [criterion.name for criterion in self._criteria]
        ratings: Mapping[str, int | None] = {}

        def read(reply: ModelReply) -> Mapping[str, int | None]:
            nonlocal ratings
            ratings = read_ratings(reply_text(reply), names)
            missing = [name for name in names if ratings[name] is None]
            if missing:
                raise InvalidInput(
                    f"a rating from 1 to 5 is missing for {', '.join(missing)}: write a line such as "
                    f'"{missing[0]}: 3"'
                )
            return ratings

        def compose(tokens: int) -> tuple[Message, ...]:
            prompt = _PROMPTS.fill(
                "rubric",
                request=self._request or _NOTHING,
                work=work(tokens) or _NOTHING,
                criteria="\n".join(f"- {c.name}: {c.description}" for c in self._criteria),
                form="\n".join(f"{name}: <1 to 5>" for name in names),
            )
            return (Message(role="user", content=prompt),)

        try:
            found = await self._conversation.ask("judge", compose, read)
        except ModelRefused as error:
            return {}, str(error)
        return ratings, found.why if isinstance(found, UnreadableReply) else ""


def _share(rating: int | None) -> float | None:
    return None if rating is None else (rating - _LOWEST) / (_HIGHEST - _LOWEST)
