"""The rating of a round by a person on rules: gain, cost, and repeated questions, with the reason in their words.

    s = value(gain) - effort cost · minutes - 1 if asked the same again - strictness

The gain is the change in utility as they estimate it, from -1 to 1: for each of their wishes, how likely the
output meets it, before and after. The minutes are those of reading what others wrote since their last act, and
of typing that act; the request is not counted. The rating is ``s``, rounded, within 1 to 5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Final

import msgspec

from ..engine.events import ProgressRated
from ..engine.rounds import PRODUCTIVE, is_unproductive
from ..engine.session.decisions import Rate
from ..engine.session.view import View
from ..engine.text import count_words
from .manner import fresh, is_open, is_query
from .personas import Persona

__all__ = (
    "CLAIMED",
    "LIKELY",
    "QUESTION",
    "TOLD",
    "UNKNOWN",
    "Felt",
    "compare",
    "felt",
    "first_output",
    "is_loss",
    "questioned",
    "rated",
)

_NOTHING: Final = 2.0
"""The value of a round that changed nothing."""

_SLOPE, _ENOUGH, _FURTHER = 20.0, 0.1, 3.0
"""Points for each unit of utility gained, the gain up to which that holds, and the points after it."""

QUESTION: Final = 0.05
"""The gain that a person expects of a question about something that they care for."""

UNKNOWN, TOLD, CLAIMED, LIKELY = 0.4, 0.5, 0.7, 0.9
"""Probability that a wish is met: unstated; stated; stated before the output changed; seen to be met, or
repeated by the agent."""

_OPEN: Final = 0.3
"""Below this probability, a wish counts as open."""

_HALF: Final = 2.6
"""The value of a first output that meets no wish."""

_ALL: Final = 0.8
"""Extra points if nothing is wrong any more."""

_IGNORED: Final = 0.03
"""Being ignored counts as this loss in utility."""

_READS, _TYPES = 238.0, 52.0
"""Words a minute, as in ``docs/people.md``."""

_AGAIN: Final = 1.0
_ENDS = re.compile(r"(?<=[.!?])")  # a pattern for questions takes quadratic time

_NAMED: Final = 2
"""Wishes that they name in a reason."""

_BETTER: Final = (
    "Progress on {about}.",
    "That helps with {about}.",
    "A step forward on {about}.",
    "Better than before on {about}.",
    "We get on: I see something done about {about}.",
    "That was about {about}, and I am glad of it.",
    "I have less to worry about now with {about}.",
)
_WORSE: Final = (
    "We have lost ground on {about}.",
    "Worse than before on {about}.",
    "I was better off before on {about}.",
    "A step back on {about}.",
    "That has spoiled it for {about}.",
)
_SAME: Final = (
    "I see no movement on {about}.",
    "Still not there on {about}.",
    "Still not right: {about}.",
    "No change on {about}.",
    "We are where we were on {about}.",
    "I still cannot accept it as it is: {about}.",
)
_IDLE: Final = (
    "That brought me nothing.",
    "I am as far as I was before.",
    "Nothing has come of that for me.",
    "I do not see what that was for.",
    "No gain for me in that.",
    "That round I could have done without.",
)
_CHANGED: Final = (
    "It is different now, but no better on {about}.",
    "Changes, but none that helps with {about}.",
    "Another version, and still not right on {about}.",
    "It has changed, and I am still not content with {about}.",
)
_SHUFFLED: Final = (
    "It has changed, but I cannot see what for.",
    "Another version, and to me no better one.",
    "Something is different, and it does not help me.",
    "I see changes, and no gain in them.",
)
_FIRST: Final = (
    "A start. Still to be put right: {about}.",
    "A first version, not yet right on {about}.",
    "Something to work with, except for {about}.",
    "It is a beginning, and I still have something to say on {about}.",
)
_BEGUN: Final = (
    "A start that I can work with.",
    "A first version, and I see nothing wrong with it so far.",
    "A good beginning, as far as I can see.",
    "There is something to look at now.",
    "We have begun, and it looks sensible.",
)
_FITS: Final = (
    "I find nothing wrong with it.",
    "It fits, as far as I can see.",
    "Nothing left to complain about.",
    "That will do, as far as I can tell.",
    "I have no objections to that.",
)
_ASKED: Final = (
    "A sensible question about {about}.",
    "It wants to know about {about}, and that matters to me.",
    "Right to ask about {about}.",
    "Good that somebody asks about {about}.",
    "I was waiting for that question about {about}.",
)
_WAITING: Final = (
    "Nothing that helps yet.",
    "I have nothing in my hands yet.",
    "So far that brings me nothing.",
    "I am still waiting for something to look at.",
)
_AGAIN_WORDS: Final = (
    "I have been asked that before.",
    "The same question as before.",
    "I have answered that already.",
    "Did it not listen the first time?",
    "That question comes round again.",
)
_COSTLY: Final = (
    "Too much effort for what it brought.",
    "That took me long for one small thing.",
    "A lot to read and to write for so little.",
    "Not worth the time that it took me.",
)


_LITTLE: Final = (
    "That was not much of a step.",
    "A small thing, and no more than that.",
    "I had hoped for a little more.",
    "It helps me less than I thought.",
)

_MUCH: Final = 0.4
"""Points that a round costs from which people speak of the effort."""


class Felt(msgspec.Struct, frozen=True):
    """The worth of a round to a person, before its cost.

    Attributes:
        value: in points of the scale from 1 to 5.
        words: the reasons that they might give.
    """

    value: float
    words: tuple[str, ...] = ()


def felt(gain: float, *words: str) -> Felt:
    """The worth of a round by its gain in estimated utility, from -1 to 1."""
    value = _NOTHING + _SLOPE * min(gain, _ENOUGH) + _FURTHER * max(0.0, gain - _ENOUGH)
    return Felt(min(5.0, max(1.0, value)), words)


def is_loss(one: Felt) -> bool:
    """Whether the person is worse off after a round."""
    return one.value < _NOTHING


def questioned(about: str) -> Felt:
    """The worth of a round without any output: a question about one of their wishes is welcome.

    Args:
        about: the wish that was asked about, in their words; empty if none was.
    """
    return felt(QUESTION, *_on(_ASKED, [about])) if about else felt(0.0, *_WAITING)


def first_output(after: Mapping[str, float]) -> Felt:
    """The worth of a first output: it was expected, so how much of it fits counts.

    Args:
        after: see ``compare``.
    """
    open_ = _open(after)
    words = _on(_FIRST, open_) if open_ else _BEGUN
    return Felt(_HALF + 2.0 * _mean(after), words)


def compare(
    before: Mapping[str, float],
    after: Mapping[str, float],
    *,
    changed: bool,
    about: str = "",
    complained: bool = False,
) -> Felt:
    """The worth of a round, by the change in utility as the person estimates it.

    Args:
        before: how likely each of their wishes was met at their last act, by its name in their words.
        after: how likely it is met now.
        changed: whether the output is another one.
        about: what they were asked about, if they care for it and had not told it.
        complained: whether they had said so, and were asked nothing in return.
    """
    gain = _mean(after) - _mean(before)
    if gain < 0.0:
        fallen = [name for name, met in after.items() if met < before.get(name, met)]
        return felt(gain, *_on(_WORSE, fallen))
    open_ = _open(after)
    if gain > 0.0:
        risen = [name for name, met in after.items() if met > before.get(name, met)]
        one = felt(gain + QUESTION * bool(about), *_on(_BETTER, risen))
        done = all(met >= LIKELY for met in after.values())
        return Felt(min(5.0, one.value + _ALL), one.words) if done else one
    if about:
        return felt(QUESTION, *_on(_ASKED, [about]))
    if all(met >= LIKELY for met in after.values()):
        return Felt(4.0 if changed else 3.0, _FITS)
    if changed:
        return felt(0.0, *(_on(_CHANGED, open_) if open_ else _SHUFFLED))
    ignored = complained and bool(open_)
    return felt(-_IGNORED if ignored else 0.0, *(_on(_SAME, open_) if open_ else _IDLE))


def rated(one: Felt, view: View, persona: Persona) -> Rate:
    """The rating that follows: less what the round cost, by how strict the person is."""
    since, acts = view.last_act, view.acts
    last = next((m for m in reversed(view.messages) if m.version <= since), None)
    typed = 0
    if last is not None and last.version == since and last.text != view.request:
        typed = count_words(last.text)
    heard = [m for m in view.messages if m.actor != view.me and m.version > since]
    read = sum(count_words(message.text) for message in heard)
    free = one.value - persona.strictness
    cost = persona.effort_cost * (read / _READS + typed / _TYPES)
    value = free - cost
    again = _is_asked_again(view, since)
    given = min(5, max(1, round(value - again * _AGAIN)))
    words = one.words
    if is_unproductive(given):
        if again:
            words = _AGAIN_WORDS
        elif round(free) >= PRODUCTIVE:
            words = _COSTLY if cost >= _MUCH else _LITTLE
    chance = Random(f"{view.seed}/{view.me}/{acts}/rating")
    return Rate(given, fresh(words, _reasons(view), chance) if words else "")


def _mean(met: Mapping[str, float]) -> float:
    return sum(met.values()) / max(1, len(met))


def _open(met: Mapping[str, float]) -> list[str]:
    return [name for name, likely in met.items() if likely < _OPEN]


def _on(texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The texts about the first few of some wishes."""
    about = " and ".join(names[:_NAMED])
    return tuple(text.format(about=about) for text in texts)


def _reasons(view: View) -> list[str]:
    """The reasons that the person has given so far."""
    own = (record for record in view.records if record.kind == "ProgressRated")
    return [r.event.explanation or "" for r in own if isinstance(r.event, ProgressRated)]


def _is_asked_again(view: View, since: int) -> bool:
    """Whether all that was asked since the person's last act had been asked before; not if they asked back."""
    own = [message.text for message in view.messages if message.actor == view.me]
    if own and is_query(own[-1]):
        return False
    before: set[str] = set()
    now: set[str] = set()
    for message in view.messages:
        if message.actor != view.me and "?" in message.text:
            (now if message.version > since else before).update(_asked(message.text))
    return bool(now) and now <= before


@lru_cache(maxsize=1024)
def _asked(text: str) -> frozenset[str]:
    """The questions of a message, in small letters, without those that leave everything open."""
    return frozenset(
        one.strip().lower()
        for one in _ENDS.split(text)
        if one.endswith("?") and one != "?" and not is_open(one)
    )
