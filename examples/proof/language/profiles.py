"""The hidden profile in sentences, as its owner reads it, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ....engine.events import JSON
from ....tasks.phrases import spelled
from ..wishes import Form, Profile, Wishes

__all__ = ("private_part", "read_profile", "spell_profile")

_FORMS: Final[Mapping[Form, str]] = {
    "stated": "as it was stated, no matter what else holds",
    "restrict": "with its divisor, and for as many n as possible",
    "weaken": "for the n that it is about, with the largest divisor that works",
    "general": "in full generality",
}
_LEMMAS: Final[Mapping[str, str]] = {
    "consecutive": "products of consecutive integers",
    "squares": "squares",
    "powers": "powers",
}
_LATER = re.compile(r"Once I have seen that ([A-F](?: or [A-F])*) is false, (.*)")
_LABEL = re.compile(r"\b[A-F]\b")


def spell_profile(profile: Profile) -> tuple[str, ...]:
    """The sentences of a profile."""
    held = _spelled(profile.now, Wishes(core=(), minor=(), forms={}, lemma=""))
    sentences = [one[0].upper() + one[1:] for one in held]
    if profile.later is not None:
        once = f"Once I have seen that {' or '.join(profile.turns)} is false,"
        sentences += [f"{once} {one}" for one in _spelled(profile.later, profile.now)]
    return tuple(sentences)


def private_part(profile: Profile) -> JSON:
    """A profile as recorded: in sentences."""
    return {"profile": list(spell_profile(profile))}


def read_profile(private: JSON) -> Profile | None:
    """The profile in a private part; None if there is none."""
    sentences = private.get("profile") if isinstance(private, Mapping) else None
    if not isinstance(sentences, list | tuple):
        return None
    return _read(tuple(map(str, sentences)))


@lru_cache(maxsize=512)
def _read(sentences: tuple[str, ...]) -> Profile | None:
    first: list[str] = []
    after: list[str] = []
    turns: tuple[str, ...] = ()
    for sentence in sentences:
        later = _LATER.fullmatch(sentence)
        if later is not None:
            turns = tuple(_LABEL.findall(later[1]))
            after.append(later[2])
        else:
            first.append(sentence)
    held = _wishes(first, Wishes(core=(), minor=(), forms={}, lemma=""))
    if not held.core or not held.lemma:
        return None
    return Profile(now=held, later=_wishes(after, held) if after else None, turns=turns)


def _spelled(wishes: Wishes, before: Wishes) -> list[str]:
    """The wishes that are new since before, in sentences."""
    said: list[str] = []
    if wishes.core != before.core:
        said.append(f"the paper rests on {spelled(wishes.core)}")
    if wishes.minor != before.minor:
        said.append(f"{spelled(wishes.minor)} would be welcome too, and the rest does not matter")
    said += [
        f"I want {label} {_FORMS[form]}"
        for label, form in wishes.forms.items()
        if label not in before.forms
    ]
    if wishes.lemma != before.lemma:
        said.append(f"a lemma about {_LEMMAS[wishes.lemma]} would help me in other work")
    return said


def _wishes(sentences: list[str], before: Wishes) -> Wishes:
    core, minor, lemma = before.core, before.minor, before.lemma
    forms = dict(before.forms)
    for sentence in sentences:
        labels = tuple(_LABEL.findall(sentence))
        if "rests on" in sentence:
            core = labels
        elif "would be welcome" in sentence:
            minor = labels
        elif "lemma about" in sentence:
            lemma = next((one for one, text in _LEMMAS.items() if text in sentence), lemma)
        else:
            form = next((one for one, text in _FORMS.items() if text in sentence), None)
            if form is not None and labels:
                forms[labels[0]] = form
    return Wishes(core=core, minor=minor, forms=forms, lemma=lemma)
