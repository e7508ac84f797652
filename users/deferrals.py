"""Answers that leave a decision to the other, and how to tell them."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random
from typing import Final

__all__ = ("DEFERRALS", "is_deferral", "say_deferral")

DEFERRALS: Final = (
    "Whatever you think is best.",
    "You choose for me.",
    "You decide, please.",
    "I leave that to you.",
    "Up to you.",
    "Doesn't matter to me.",
    "That's your call.",
    "Your choice.",
    "I have no strong opinion on that.",
    "I'd rather you decided that.",
)
"""Answers that leave a decision to the other."""

_DEFERRING = re.compile(
    r"whatever you (?:think|like|prefer)|\byou (?:decided?|choose)\b|\bup to you\b|\byour (?:call|choice)\b|"
    r"\b(?:don't|can't|do not|cannot) (?:really )?(?:remember|recall)|\bno (?:preference|wish|strong opinion)\b|"
    r"\bleave (?:that|it|this) to you\b|\bsurprise me\b|\b(?:doesn't|does not) matter to me\b"
)


def say_deferral(words: Random) -> str:
    """An answer that leaves the decision to the other."""
    return words.choice(DEFERRALS)


def is_deferral(text: str) -> bool:
    """Whether a message leaves a decision to the other, instead of stating something."""
    return _defers(text)


@lru_cache(maxsize=1024)
def _defers(text: str) -> bool:
    return _DEFERRING.search(text.lower().replace("’", "'")) is not None
