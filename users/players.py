"""Makes the human of a session: simulated on the rules of its task or on a model, or a real person."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ..engine.errors import InvalidInput
from ..engine.events import Participant
from ..engine.models.model_player import model_player
from ..engine.models.prompting.conversation import Compose, ModelConversation
from ..engine.models.protocol import Message, ModelReply
from ..engine.models.rehearsal import RuleReplies
from ..engine.session.actors import Player, Policy, playing_new
from ..engine.session.decisions import ChangeProfile, Decision, Finish, Rate, Say
from ..engine.session.view import View
from ..engine.task import Brief, Cell, Setting
from .cognition.mind import AnewMind, LimitedMind, limited_changing, limited_mind
from .cognition.perception import Perception
from .manner import Mannered
from .model_mind import ModelUserMind, prompt_digest, titles, user_messages
from .personas import Persona, find_persona
from .simulated import Changing, ChangingMind, SimulatedUser, UserIntent, UserMind

__all__ = ("user_player",)


def user_player(
    session: str,
    cell: Cell,
    setting: Setting,
    *,
    brief: Brief,
    rules: Callable[[], UserMind] | None = None,
    changing: Callable[[], Changing] | None = None,
    name: str = "user",
) -> Player:
    """The human of a cell's session.

    Args:
        session: session id.
        cell: says which persona, see ``find_persona``, and which model, if any.
        setting: says how the model is reached and asked; its ``person`` plays in place of either, and its
            ``users`` play under their names.
        brief: describes the task to a model.
        rules: makes the rules that the task ships for users, if it ships any.
        changing: makes what says how a simulated user's goals have changed, on rules or on a model.
        name: the name of the participant.

    Raises:
        InvalidInput: there is no such persona, neither a model nor rules, or nothing that reaches
            the model.
    """
    if setting.person is not None:
        return Player(Participant(name=name, role="human"), setting.person)
    own = setting.users.get(cell.user)
    if own is not None:
        return Player(Participant(name=name, role="human", policy=cell.user), own.actor)
    persona = find_persona(cell.user)
    if cell.user_model is not None:
        from .players import model_user  # rules need nothing of it

        return model_user(
            session,
            persona,
            cell.user_model,
            setting,
            brief=brief,
            rules=rules,
            changing=changing,
            name=name,
        )
    if rules is None:
        raise InvalidInput("this task ships no rules for users: name a model for them")
    participant = Participant(name=name, role="human", policy="rules", persona=persona.name)

    def policy() -> Policy:
        mind = limited_mind(rules, persona)
        # A mind that has worked out a change while it chose need not be asked to do so again.
        own = mind.changed if changing is not None and isinstance(mind, ChangingMind) else None
        return SimulatedUser(Mannered(mind), persona, own or limited_changing(changing, persona))

    return Player(participant, playing_new(policy))


# --- makes a simulated user on a model ------------------------------------------------------------


def model_user(
    session: str,
    persona: Persona,
    model: str,
    setting: Setting,
    *,
    brief: Brief,
    rules: Callable[[], UserMind] | None,
    changing: Callable[[], Changing] | None,
    name: str,
) -> Player:
    """A simulated user on a model; see ``players.user_player``.

    Raises:
        InvalidInput: nothing reaches the model; or it is to be rehearsed, and there are no rules.
    """

    def mind(conversation: ModelConversation) -> UserMind:
        return ModelUserMind(conversation, brief)

    def policy(mind: UserMind) -> Policy:
        return SimulatedUser(
            LimitedMind(mind, persona.cognition) if persona.limited else mind,
            persona,
            limited_changing(changing, persona),
        )

    def compose() -> Compose:
        perception = Perception(persona.cognition) if persona.limited else None

        def shown(view: View, prompt: str, tokens: int) -> tuple[Message, ...]:
            seen = view if perception is None else perception.of(view)
            return user_messages(brief, persona, seen, prompt, tokens)

        return shown

    def anew(make: Callable[[], UserMind]) -> Callable[[], UserMind]:
        return (lambda: AnewMind(make)) if persona.limited else make

    return model_player(
        Participant(
            name=name,
            role="human",
            policy="model",
            model=model,
            persona=persona.name,
            prompt=prompt_digest(brief),
        ),
        session,
        setting.reach(model),
        setting.use(model),
        mind=mind,
        policy=policy,
        compose=compose,
        rehearsal=setting.rehearsal,
        rules=None if rules is None else anew(rules),
        rehearsed=_RehearsedUser,
        parts=None if brief.form is None else brief.form.read,
    )


@final
class _RehearsedUser:
    """A user's mind on a model whose replies are what rules decide."""

    def __init__(self, mind: UserMind, rules: UserMind, replies: RuleReplies) -> None:
        self._mind = mind
        self._rules = rules
        self._replies = replies
        # What rules say in one decision with their work: a model either works or speaks.
        self._unsaid = ""

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        async def chosen() -> ModelReply:
            if self._unsaid and view.pending is None:
                return ModelReply(text=titles(view)["feedback"])
            intent = await self._rules.choose(view, persona)
            if intent != "nothing":  # rules may decide to leave while they compose
                decision = await self._rules.compose(view, persona, intent)
                ends = [verb for verb in decision.verbs if isinstance(verb, Finish)]
                if ends:
                    intent = "leave" if ends[0].reason == "abandoned" else "finish"
            return ModelReply(text=titles(view).get(intent, "Do nothing"))

        self._replies.reply(chosen)
        return await self._mind.choose(view, persona)

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        async def offered() -> Decision:
            decision = await self._rules.compose(view, persona, intent)
            self._unsaid = _said(decision)
            # A final decision includes what ``SimulatedUser`` put before it.
            work = [v for v in decision.verbs if not isinstance(v, Rate | ChangeProfile | Say)]
            return Decision(tuple(work), decision.seconds)

        async def composed() -> ModelReply:
            said, self._unsaid = self._unsaid, ""
            said = said or _said(await self._rules.compose(view, persona, intent))
            return ModelReply(text=said or "Fine.")

        if intent in ("answer", "feedback"):
            self._replies.reply(composed)
        else:
            self._replies.decide(offered)
        return await self._mind.compose(view, persona, intent)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        async def rated() -> ModelReply:
            rating = await self._rules.rate(view, persona)
            return ModelReply(text="3" if rating is None else str(rating.rating))

        self._replies.reply(rated)
        return await self._mind.rate(view, persona)


def _said(decision: Decision) -> str:
    """The text of a decision's messages."""
    return " ".join(verb.text for verb in decision.verbs if isinstance(verb, Say))
