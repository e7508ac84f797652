"""Hints at wishes, which a reader may understand in more than one way, in part, or not at all.

People often hint; the listener may misunderstand, or ask again. The reader in `reading` goes by the
words of a hint, and knows nothing of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import ceil
from random import Random
from typing import Final

from ....tasks.phrases import counted
from .facts import Fact, Slot
from .messages import as_one

__all__ = ("hint", "hinted", "hints")

_SPELLED: Final = 10  # numbers up to this are words

_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "children under 10": (
        "our little ones are with us, so keep that in mind.",
        "the small ones get tired early, you know.",
    ),
    "parties": (
        "it may get a bit loud in the evenings.",
        "we have something to celebrate.",
    ),
    "pets": (
        "we are not alone: there are four paws in the family.",
        "somebody furry comes along.",
    ),
    "smoking": ("some of us step outside every hour, if you see what I mean.",),
    "visitors": (
        "somebody may drop in on us while we are there.",
        "we know a lot of people down there.",
    ),
    "entire room": ("we like to have some peace at night.",),
    "private room": ("we like to have some peace at night.",),
    "shared room": (
        "where we sleep need not be grand.",
        "a bed is a bed, as far as I am concerned.",
    ),
    "not shared room": ("we like to have some peace at night.",),
    "no flight": (
        "we'd rather keep our feet on the ground.",
        "I get nervous when I leave the ground.",
    ),
    "no self-driving": (
        "nobody is keen on long hours on the road.",
        "we would like somebody else to take us around.",
    ),
}


def hints(fact: Fact) -> tuple[str, ...]:
    """All the ways to hint at a wish; none if it can only be said plainly."""
    value = fact.value
    if isinstance(value, tuple):
        return (f"something in the direction of {value[0]} food, and so on.",)
    if isinstance(value, str):
        return _FIXED.get(value, ())
    if fact.slot == "budget":
        thousands = ceil(value / 1000)
        few = (
            counted(thousands, "thousand", "thousand") if thousands <= _SPELLED else "many thousand"
        )
        return (
            "nothing too fancy, please.",
            "please do not ruin us.",
            f"somewhere below {few}, all in all.",
        )
    if fact.slot == "people" and value == 1:
        return ()
    if fact.slot == "people":
        pair = value in (2, 3)
        return (
            ("a couple of us are going.", "there is a couple of us.")
            if pair
            else ("there are a few of us, you know.", "we are quite a crowd.")
        )
    return (
        ("not too much moving around, please.", "we don't want to live out of a suitcase.")
        if fact.slot == "cities"
        else ()
    )


def hint(fact: Fact, random: Random) -> str | None:
    """A hint at a wish; None if it has no hints."""
    texts = hints(fact)
    if not texts:
        return None
    text = random.choice(texts)
    return text[0].upper() + text[1:]


def hinted(text: str, wishes: Iterable[Fact]) -> tuple[Slot, ...]:
    """The slots of the wishes that the traveller's own text hinted at."""
    low = text.lower()
    return tuple(wish.slot for wish in wishes if any(one in low for one in _signs(wish)))


@lru_cache(maxsize=512)
def _signs(wish: Fact) -> tuple[str, ...]:
    """All hints at a wish, of one traveller or of several, in small letters."""
    return tuple(text.lower() for one in hints(wish) for text in (one, as_one(one)))
