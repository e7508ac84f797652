"""An annotator that asks a model: the labels of a turn, and ratings of progress by them.

The rules in ``turns`` know English and a limited number of phrases. A model reads any language. Its
replies are recorded in the judge's own stream, so that a replay calls no model.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, cast, final

import msgspec

from ...engine.errors import InvalidInput, ModelRefused
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import (
    ModelConversation,
    ModelUse,
    UnreadableReply,
    reply_text,
)
from ...engine.models.prompting.prompts import load_prompts
from ...engine.models.protocol import Caller, Message, ModelReply
from ...engine.rounds import Rounds
from ...engine.scorers.protocol import Scorer
from ..turns import LABELS, Label, Turn
from .model_judge import shortened
from .model_scorer import ModelScorer, version_of
from .progress import Evidence, ProgressJudge, Verdict, labels_verdict, reply_of

__all__ = ("LABELS_JUDGE", "ModelAnnotator", "model_labels_judge")

LABELS_JUDGE: Final = "labels-judge"
"""Name of the progress judge that goes by a model's labels."""

_VERSION = "1"
_PROMPTS = load_prompts(__package__, "annotation")  # apart, so that other judges keep their version
_NOTHING = "(nothing)"
_NONE = "none"
_WORD = re.compile(r"[a-z]+")


@final
class ModelAnnotator:
    """Labels turns as an ``Annotator`` does, by asking a model.

    Args:
        conversation: with the model.
    """

    def __init__(self, conversation: ModelConversation) -> None:
        self._conversation = conversation

    async def labels(self, turn: Turn) -> frozenset[Label] | str:
        """The labels of a turn; a text that says why there are none if the model gives none."""
        try:
            found = await self._conversation.ask("judge", partial(_messages, turn), _read)
        except ModelRefused as error:
            return str(error)
        return found.why if isinstance(found, UnreadableReply) else found


def model_labels_judge(models: Models, use: ModelUse, *, rounds: Rounds = "handoff") -> Scorer:
    """Rates each round as ``progress.rule_verdict`` does, by the labels that a model gives.

    Args:
        models: access to the model.
        use: which model, and how it is called.
        rounds: how rounds are counted.
    """
    version = version_of(_VERSION, use, _PROMPTS.digest)
    config = {"use": msgspec.to_builtins(use), "prompts": _PROMPTS.digest}

    def make(caller: Caller) -> Scorer:
        rate = partial(_verdict, ModelAnnotator(ModelConversation(caller, use)))
        return ProgressJudge(LABELS_JUDGE, version, rate, config=config, rounds=rounds)

    return ModelScorer(models, make)


async def _verdict(annotator: ModelAnnotator, evidence: Evidence) -> Verdict:
    labels = await annotator.labels(reply_of(evidence))
    if isinstance(labels, str):
        return Verdict(missing=labels)
    found = labels_verdict(evidence, labels)
    named = ", ".join(label for label in LABELS if label in labels) or _NONE
    return msgspec.structs.replace(found, explanation=f"{found.explanation} ({named})")


def _messages(turn: Turn, tokens: int) -> tuple[Message, ...]:
    prompt = _PROMPTS.fill(
        "labels",
        said=shortened(turn.said, tokens // 4) or _NOTHING,
        before=shortened(turn.before, tokens // 4) or _NOTHING,
        text=shortened(turn.text, tokens // 4) or _NOTHING,
    )
    return (Message(role="user", content=prompt),)


def _read(reply: ModelReply) -> frozenset[Label]:
    first = next((line for line in reply_text(reply).lower().splitlines() if line.strip()), "")
    words = set(_WORD.findall(first))
    if not words or words - {*LABELS, _NONE} or (_NONE in words and len(words) > 1):
        raise InvalidInput(f"its first line must name labels, all of them of {', '.join(LABELS)}")
    return frozenset(cast("Label", word) for word in words - {_NONE})
