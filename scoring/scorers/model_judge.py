"""The judge of progress that asks a model: it rates each round from 1 to 5.

A rating that the reply does not clearly state is missing, with the reason, and never guessed. Every
reply is recorded in the judge's own stream, so that a replay calls no model.
"""

from __future__ import annotations

from functools import partial

import msgspec

from ...engine.errors import InvalidInput, ModelRefused
from ...engine.files import output_text
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import (
    ModelConversation,
    ModelUse,
    UnreadableReply,
    reply_text,
)
from ...engine.models.prompting.parse_rating import explanation_of, read_rating
from ...engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN
from ...engine.models.prompting.prompts import load_prompts
from ...engine.models.protocol import Caller, Message, ModelReply
from ...engine.rounds import Rounds
from ...engine.scorers.protocol import Scorer
from .model_scorer import ModelScorer, version_of
from .progress import Evidence, ProgressJudge, Verdict

__all__ = ("JUDGE", "model_judge", "shortened")

JUDGE = "model-judge"
"""Name of the progress judge that asks a model."""

_VERSION = "1"
_PROMPTS = load_prompts(__package__)
_NOTHING = "(nothing)"


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
        content = shortened(output_text(evidence.update), tokens // 2)
        did.append(f"- It put up a new version of the output:\n{content}")
    prompt = _PROMPTS.fill(
        "progress",
        request=evidence.request or _NOTHING,
        before=evidence.before or evidence.request or _NOTHING,
        said=shortened("\n\n".join(evidence.said), tokens // 4) or _NOTHING,
        did="\n".join(did) or _NOTHING,
        after=evidence.after,
    )
    return (Message(role="user", content=prompt),)


def _read_progress(reply: ModelReply) -> Verdict:
    text = reply_text(reply)
    rating = read_rating(text)
    if rating is None:
        raise InvalidInput("the first line lacks a single rating from 1 to 5")
    return Verdict(rating=rating, explanation=explanation_of(text))


def shortened(text: str, tokens: int) -> str:
    """The beginning of a text, of about this many tokens at most."""
    most = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return text
    return f"{text[:most]}\n(... {len(text) - most} characters are left out here)"
