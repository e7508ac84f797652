"""Makes a player whose mind asks a model, or is answered by the task's rules in a rehearsal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import InvalidInput
from ..events import Participant
from ..session.actors import Player, Policy
from .calls.actor_caller import model_actor
from .clients.rehearsal import Rehearsal, RuleReplies
from .gateway import Models
from .prompting.conversation import ModelConversation, ModelPolicy, ModelUse
from .protocol import Caller

__all__ = ("model_player",)

Mind = TypeVar("Mind")


def model_player(
    participant: Participant,
    session: str,
    models: Models,
    use: ModelUse,
    *,
    mind: Callable[[ModelConversation], Mind],
    policy: Callable[[Mind], Policy],
    rehearsal: Rehearsal | None,
    rules: Callable[[], Mind] | None,
    rehearsed: Callable[[Mind, Mind, RuleReplies], Mind],
) -> Player:
    """A player on a model.

    Args:
        participant: who plays.
        session: session id.
        models: reaches the model.
        use: which model is asked, and how.
        mind: makes the mind that asks the model through a conversation.
        policy: makes the policy of a mind.
        rehearsal: answers in place of the model; None asks the model.
        rules: makes the rules that decide in a rehearsal.
        rehearsed: makes the mind of a rehearsal, of the mind on the model, the rules, and where the
            rules' decisions go to be the model's replies.

    Raises:
        InvalidInput: there is a rehearsal, and there are no rules.
    """
    if rehearsal is not None and rules is None:
        whose = "agents" if participant.role == "agent" else "users"
        raise InvalidInput(
            f"this task ships no rules for {whose} that could play the part of model {use.model!r}, "
            "so that nothing can be estimated"
        )

    def make(caller: Caller) -> Policy:
        conversation = ModelConversation(caller, use)
        played = mind(conversation)
        if rehearsal is not None and rules is not None:
            replies = RuleReplies(rehearsal, session, participant.name, as_text=use.text_actions)
            played = rehearsed(played, rules(), replies)
        return ModelPolicy(policy(played), conversation)

    return Player(participant, model_actor(models, make))
