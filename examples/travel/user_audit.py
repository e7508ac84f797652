"""Audits simulated travellers: wishes that are not in the profile, and several wishes at once."""

from __future__ import annotations

from collections.abc import Iterator

from ...users.audit import CHECKS, Check, Fault, Utterance
from .language.facts import ANY, Fact
from .language.hints import hinted
from .language.messages import understand_message
from .second_thoughts import wishes_of

__all__ = ("TRAVEL_CHECKS", "find_strange_wishes", "find_too_much")

_AT_ONCE = 2
"""Slots of which a user that reveals one wish at a time mentions one per message."""


def find_strange_wishes(said: Utterance) -> Iterator[Fault]:
    """Wishes, as far as they can be read, that the profile does not have, or has otherwise.

    Not those that others mentioned before: to accept a proposal is no invention. Nor is a hint, which
    says less than it may be read as.
    """
    wishes = {fact.slot: fact for fact in wishes_of(said.profile)}
    proposed = {fact for text in said.known for fact in understand_message(text)}
    meant = hinted(said.text, wishes.values())
    for fact in understand_message(said.text):
        wish = wishes.get(fact.slot)
        if fact.value == ANY or fact in proposed or _is_part(fact, wish) or fact.slot in meant:
            continue
        if wish is None:
            yield Fault("invention", f"the profile says nothing of {fact.slot}: {fact.value}")
        else:
            yield Fault("contradiction", f"{fact.slot} is {wish.value}, and not {fact.value}")


def find_too_much(said: Utterance) -> Iterator[Fault]:
    """Several wishes in one message, none of which was told before."""
    wishes = set(wishes_of(said.profile))
    told = {fact.slot for text in said.before for fact in understand_message(text)}
    fresh = [f.slot for f in understand_message(said.text) if f in wishes and f.slot not in told]
    if len(fresh) >= _AT_ONCE:
        yield Fault("several at once", f"tells {', '.join(fresh)} in one message")


TRAVEL_CHECKS: tuple[Check, ...] = (*CHECKS, find_strange_wishes, find_too_much)
"""The checks for simulated travellers."""


def _is_part(fact: Fact, wish: Fact | None) -> bool:
    """Whether a fact says no more than a wish does: one of its cuisines, say."""
    if wish is None:
        return False
    if isinstance(fact.value, tuple) and isinstance(wish.value, tuple):
        return set(fact.value) <= set(wish.value)
    return fact.value == wish.value
