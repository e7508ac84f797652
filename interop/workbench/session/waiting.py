"""Cards for a session that waits for a person, with the question and the people who may answer."""

from __future__ import annotations

from typing import Final

from ....scoring.display.texts import shorten
from ..markup.html import EMPTY, Html, join, tag
from .reading import Moment, SessionReading

__all__ = ("waiting_cards",)

_TEXT: Final = 600
_NAME: Final = 60


def waiting_cards(reading: SessionReading, moment: Moment) -> Html:
    """A card for each open approval, or for an unanswered message to a person; none in a closed session.

    Args:
        reading: the reading of the session, by who may see it.
        moment: the session as it is now.
    """
    if moment.state != "open":
        return EMPTY
    people = [one.name for one in reading.participants if one.role == "human" and not one.policy]
    simulated = [one.name for one in reading.participants if one.role == "human" and one.policy]
    who = _answers(people, simulated)
    cards = [
        _card(
            f"{shorten(actor, _NAME)} asks for approval",
            question,
            f"It goes on only with an answer: if it is denied, {shorten(actor, _NAME)} is told so. {who}",
        )
        for _, actor, question in moment.approvals
    ]
    if not cards and people and reading.words.unanswered:
        actor, said = reading.words.unanswered
        cards.append(_card(f"{shorten(actor, _NAME)} waits for a reply", said, who))
    return join(cards)


def _card(title: str, said: str, what: str) -> Html:
    return tag(
        "div",
        tag("b", title),
        tag("blockquote", shorten(said, _TEXT), dir="auto"),
        tag("small", what),
        class_="pinned",
        role="status",
    )


def _answers(people: list[str], simulated: list[str]) -> str:
    """The actors who may answer."""
    if people:
        return (
            f"{' or '.join(shorten(one, _NAME) for one in people)} can answer, by their own link."
        )
    if simulated:
        return f"The simulated user {shorten(simulated[0], _NAME)} answers by itself."
    return "Nobody takes part who could answer."
