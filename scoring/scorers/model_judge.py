"""Judges that ask a model: the progress of each round from 1 to 5, or an output by a rubric.

A rating that the reply does not clearly state is missing, with the reason, and never guessed. Every
reply is recorded in the judge's own stream, so that a replay calls no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import final

import msgspec

from ...engine.errors import InvalidInput, ModelRefused
from ...engine.events import ScorerRef, SessionOpened, SnapshotTaken, UtilityScored
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import (
    ModelConversation,
    ModelUse,
    UnreadableReply,
    reply_text,
)
from ...engine.models.prompting.parse_rating import explanation_of, read_rating, read_ratings
from ...engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN
from ...engine.models.prompting.prompts import load_prompts
from ...engine.models.protocol import Caller, Message, ModelReply
from ...engine.records import TRACE, Record
from ...engine.rounds import Rounds
from ...engine.scorers.protocol import Measurement, Scorer, SessionScorer
from ...engine.text import text_of
from .criterion import Criterion
from .model_scorer import ModelScorer, version_of
from .progress import Evidence, ProgressJudge, Verdict
from .utility import NO_OPENING, reference

__all__ = ("JUDGE", "Criterion", "model_judge", "rubric_utility")

JUDGE = "model-judge"
"""Name of the progress judge that asks a model."""

_VERSION = "1"
_PROMPTS = load_prompts(__package__)
_NOTHING = "(nothing)"
_LOWEST, _HIGHEST = 1, 5


# --- progress ------------------------------------------------------------------------------------


def model_judge(models: Models, use: ModelUse, *, rounds: Rounds = "handoff") -> Scorer:
    """Rates the progress of each round for the human by asking a model (paper, appendix B).

    The model reads the human's last message, the messages, actions and output of the agent, and the
    human's next message. A round without a next message has no rating, see ``ProgressJudge``.

    Args:
        models: access to the model.
        use: which model, and how it is called.
        rounds: how rounds are counted.
    """
    version = version_of(_VERSION, use, _PROMPTS.digest)
    config = {"use": msgspec.to_builtins(use), "prompts": _PROMPTS.digest}

    def make(caller: Caller) -> Scorer:
        rate = partial(_verdict, ModelConversation(caller, use))
        return ProgressJudge(JUDGE, version, rate, config=config, rounds=rounds)

    return ModelScorer(models, make)


async def _verdict(conversation: ModelConversation, evidence: Evidence) -> Verdict:
    """Asks the model about one round."""
    try:
        found = await conversation.ask(
            "judge", partial(_progress_messages, evidence), _read_progress
        )
    except ModelRefused as error:
        return Verdict(missing=str(error))
    return Verdict(missing=found.why) if isinstance(found, UnreadableReply) else found


def _progress_messages(evidence: Evidence, tokens: int) -> tuple[Message, ...]:
    did = [f"- {one.name}: {one.outcome or 'still under way'}" for one in evidence.did]
    if evidence.update is not None:
        content = _shortened(text_of(evidence.update.content), tokens // 2)
        did.append(f"- It put up a new version of the output:\n{content}")
    prompt = _PROMPTS.fill(
        "progress",
        request=evidence.request or _NOTHING,
        before=evidence.before or evidence.request or _NOTHING,
        said=_shortened("\n\n".join(evidence.said), tokens // 4) or _NOTHING,
        did="\n".join(did) or _NOTHING,
        after=evidence.after,
    )
    return (Message(role="user", content=prompt),)


def _read_progress(reply: ModelReply) -> Verdict:
    text = reply_text(reply)
    rating = read_rating(text)
    if rating is None:
        raise InvalidInput("there is no single rating from 1 to 5 on its first line")
    return Verdict(rating=rating, explanation=explanation_of(text))


# --- rubrics -------------------------------------------------------------------------------------


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
        name: of the scorer.

    Raises:
        InvalidInput: no criterion, two of one name, or a name that no scorer can have.
    """
    names = [criterion.name.casefold() for criterion in criteria]
    if not names or len(set(names)) < len(names):
        raise InvalidInput("a rubric needs at least one criterion, each with a name of its own")
    version = version_of(_VERSION, use, _PROMPTS.digest, list(criteria))
    config = {"use": msgspec.to_builtins(use), "criteria": msgspec.to_builtins(list(criteria))}
    ref = reference(name, version, config)
    return ModelScorer(
        models, lambda caller: _Rubric(ref, criteria, ModelConversation(caller, use))
    )


@final
class _Rubric:
    def __init__(
        self, ref: ScorerRef, criteria: Sequence[Criterion], conversation: ModelConversation
    ) -> None:
        self.ref = ref
        self._criteria = criteria
        self._conversation = conversation
        self._opened: SessionOpened | None = None
        self._request = ""

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        event = record.event
        if isinstance(event, SessionOpened):
            self._opened, self._request = event, event.request or ""
        elif record.kind == "MessageSent" and record.role == "human":
            self._request = self._request or getattr(event, "text", "")
        elif isinstance(event, SnapshotTaken) and record.role in ("human", "agent"):
            return [await self._score(record.version, event)]
        return ()

    async def _score(self, version: int, taken: SnapshotTaken) -> Measurement:
        """Judges one snapshot."""
        why = NO_OPENING
        ratings: Mapping[str, int | None] = {}
        if self._opened is not None:
            ratings, why = await self._ask(text_of(taken.content))
        parts = {c.name: _share(ratings.get(c.name)) for c in self._criteria}
        rated = [(part, c.weight) for c in self._criteria if (part := parts[c.name]) is not None]
        whole = len(rated) == len(self._criteria)
        total = sum(weight for _, weight in rated)
        event = UtilityScored(
            scorer=self.ref,
            snapshot=version,
            value=sum(part * weight for part, weight in rated) / total if whole else None,
            parts=parts,
            missing=None if whole else why,
        )
        return Measurement(event, f"snapshot/{version}")

    async def _ask(self, work: str) -> tuple[Mapping[str, int | None], str]:
        """The ratings by name of the criterion; and why others are missing."""
        names = [criterion.name for criterion in self._criteria]
        ratings: Mapping[str, int | None] = {}

        def read(reply: ModelReply) -> Mapping[str, int | None]:
            nonlocal ratings
            ratings = read_ratings(reply_text(reply), names)
            missing = [name for name in names if ratings[name] is None]
            if missing:
                raise InvalidInput(
                    f"there is no rating from 1 to 5 for {', '.join(missing)}: write a line such as "
                    f'"{missing[0]}: 3"'
                )
            return ratings

        def compose(tokens: int) -> tuple[Message, ...]:
            prompt = _PROMPTS.fill(
                "rubric",
                request=self._request or _NOTHING,
                work=_shortened(work, tokens) or _NOTHING,
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


def _shortened(text: str, tokens: int) -> str:
    """The beginning of a text, of about this many tokens at most."""
    most = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return text
    return f"{text[:most]}\n(... {len(text) - most} characters are left out here)"
