"""Makes a player whose mind asks a model, or is answered by the task's rules in a rehearsal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from ..errors import InvalidInput
from ..events import JSON, Participant
from ..session.actors import Player, Policy
from ..session.decisions import Decision, drafted
from ..session.view import View
from .calls.actor_caller import model_actor
from .gateway import Models
from .prompting.conversation import Compose, ModelConversation, ModelPolicy, ModelUse
from .protocol import Caller, ModelReply
from .rehearsal import Rehearsal, RuleReplies

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
    compose: Callable[[], Compose],
    rehearsal: Rehearsal | None,
    rules: Callable[[], Mind] | None,
    rehearsed: Callable[[Mind, Mind, RuleReplies], Mind],
    parts: Callable[[str], JSON] | None = None,
) -> Player:
    """A player on a model.

    Args:
        participant: the player's participant.
        session: session id.
        models: reaches the model.
        use: which model is asked, and how.
        mind: makes the mind that asks the model through a conversation.
        policy: makes the policy of a mind.
        compose: makes what shows the model a view when it reconsiders a draft.
        rehearsal: answers in place of the model; None asks the model.
        rules: makes the rules that decide in a rehearsal.
        rehearsed: makes the mind of a rehearsal, of the mind on the model, the rules, and where the
            rules' decisions go to be the model's replies.
        parts: what models give of an output's text in its place; None for the text.

    Raises:
        InvalidInput: there is a rehearsal without rules.
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
        if rehearsal is None or rules is None:
            return ModelPolicy(policy(played), conversation, compose())
        replies = RuleReplies(
            rehearsal, session, participant.name, as_text=use.text_actions, parts=parts
        )
        played = rehearsed(played, rules(), replies)
        asking = ModelPolicy(policy(played), conversation, compose())
        return _RehearsedPolicy(asking, policy(rules()), replies)

    return Player(participant, model_actor(models, make))


@final
class _RehearsedPolicy:
    """A model-backed policy that keeps a draft as long as the rules decide on an act of its kind."""

    def __init__(self, asking: ModelPolicy, rules: Policy, replies: RuleReplies) -> None:
        self._asking = asking
        self._rules = rules
        self._replies = replies

    async def decide(self, view: View) -> Decision:
        pending = view.pending
        if pending is not None:

            async def stands() -> ModelReply:
                kinds = {type(verb) for verb in drafted(await self._rules.decide(view))}
                keeps = {type(verb) for verb in drafted(pending)} <= kinds
                return ModelReply(text="Go on" if keeps else "Drop")

            self._replies.reply(stands)
        return await self._asking.decide(view)
