"""Makes the human of a session: simulated on the rules of its task or on a model, or a real person."""

from __future__ import annotations

from collections.abc import Callable

from ..engine.errors import InvalidInput
from ..engine.events import Participant
from ..engine.session.actors import Player, playing_new
from ..engine.task import Brief, Cell, Setting
from .cognition.mind import limited_changing, limited_mind
from .personas import find_persona
from .simulated import Changing, SimulatedUser, UserMind

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
        name: of the participant.

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
        from .model_player import model_user  # rules need nothing of it

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
    return Player(
        participant,
        playing_new(
            lambda: SimulatedUser(
                limited_mind(rules, persona), persona, limited_changing(changing, persona)
            )
        ),
    )
