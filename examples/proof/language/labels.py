"""Labels of claims and names of steps in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ....tasks.phrases import spelled

__all__ = ("labels_in", "spell_labels", "steps_in")

_STEP = re.compile(r"\b([A-FL]\d?\.\d{1,2})\b")
_LABEL = re.compile(r"\b([A-F])\b(?!\.\d)")
_VERBS: Final = frozenset(
    "and or is are as in for to holds fails would should has have matters can still matter could seems "
    "too at just".split()
)
_WORD = re.compile(r"A ([a-z]+)")


def labels_in(text: str) -> tuple[str, ...]:
    """The labels of claims in a text, once each, in order; an article at its beginning is none."""
    found: list[str] = []
    for match in _LABEL.finditer(text):
        article = _WORD.match(text) if match.start() == 0 else None
        if article is not None and article[1] not in _VERBS:
            continue
        if match[1] not in found:
            found.append(match[1])
    return tuple(found)


def steps_in(text: str) -> tuple[str, ...]:
    """The names of steps in a text, such as ``B.2``."""
    return tuple(dict.fromkeys(_STEP.findall(text)))


def spell_labels(labels: Iterable[str]) -> str:
    """Labels as a list in words."""
    return spelled(tuple(labels))
