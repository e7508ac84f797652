"""The report as text: one statement a line, each of a form that can be read back and checked.

Findings are claims; assumptions say how a ruling was taken; charts are what the action gave; the
recommendation acts upon an answer. Any other line is prose: it costs attention, and claims nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, final

from .facts import CHANNELS, RULINGS, TABLES, Advice, Claim, Kind, Names, Ruling, Topic

__all__ = (
    "Assumed",
    "Charted",
    "ReportReader",
    "Statement",
    "say_advice",
    "say_assumption",
    "say_claim",
)


class Assumed(NamedTuple):
    """An assumption: a ruling, and whether it is taken to hold."""

    ruling: Ruling
    holds: bool


class Charted(NamedTuple):
    """A chart that shows what a topic asks."""

    topic: Topic


Statement: TypeAlias = Claim | Assumed | Charted | Advice
"""A statement in a line of a report."""

_ASSUMPTIONS: dict[Ruling, tuple[str, str]] = {
    "pilot": ("answers of the pilot wave count", "answers of the pilot wave are left out"),
    "staff": ("answers of staff count", "answers of staff are left out"),
    "zeros": ("a rating of 0 counts as a rating", "a rating of 0 means no answer"),
    "airport": ("prices at airports count", "prices at airports are left out"),
    "within": (
        "age groups are compared within each channel",
        "age groups are compared over all channels together",
    ),
}


def say_assumption(ruling: Ruling, *, holds: bool) -> str:
    """The line of an assumption."""
    return f"Assumption: {_ASSUMPTIONS[ruling][0 if holds else 1]}."


def say_claim(claim: Claim) -> str:
    """The line of a finding."""
    kind, about = claim.topic
    number = 0.0 if claim.value is None else claim.value
    match kind:
        case "favourite" if claim.answer == "too few":
            said = f"too few people answered in {about} to name a favourite"
        case "favourite":
            said = f"people in {about} like {claim.answer} best, {number:.1f} of 10"
        case "price" if claim.answer == "nowhere":
            said = f"{about} costs about the same everywhere"
        case "price":
            said = f"{about} costs {number:.0f} % more in {claim.answer} than elsewhere"
        case "age" if claim.answer == "alike":
            said = f"younger and older people rate {about} alike"
        case "age":
            other = "older" if claim.answer == "younger" else "younger"
            said = f"{claim.answer} people rate {about} {number:.1f} points above {other} people"
        case "channel" if claim.answer == "none":
            said = f"in no single channel do age groups differ over {about}"
        case "channel":
            where = claim.answer
            said = f"age groups differ over {about} only in the {where} channel, by {number:.1f}"
        case "quality":
            return f"Finding: {claim.answer} of the {claim.base} rows of {about} are wrong."
    unit = "prices" if kind == "price" else "answers"
    return f"Finding: {said} ({claim.base} {unit})."


def say_advice(advice: Advice) -> str:
    """The line of a recommendation."""
    (kind, about), answer = advice
    match kind:
        case "favourite" if answer == "too few":
            said = f"ask more people in {about} before you promote anything there"
        case "favourite":
            said = f"promote {answer} in {about}"
        case "price" if answer == "nowhere":
            said = f"leave the prices of {about} as they are"
        case "price":
            said = f"lower the price of {about} in {answer}"
        case "age" if answer == "alike":
            said = f"offer {about} to all ages alike"
        case "age":
            said = f"offer {about} to {answer} people"
        case _:
            said = f"look further into {about}"
    return f"Recommendation: {said}."


@final
class ReportReader:
    """Reads statements out of lines, by the names of a survey.

    Args:
        names: the names of the survey.
    """

    def __init__(self, names: Names) -> None:
        self._known: dict[str, Statement | None] = {}
        self._names = {name.lower(): name for name in (*names.regions, *names.products)}
        region = "|".join(map(re.escape, names.regions))
        product = "|".join(map(re.escape, names.products))
        r, p = f"(?P<region>{region})", f"(?P<product>{product})"
        c, t = f"(?P<where>{'|'.join(CHANNELS)})", f"(?P<table>{'|'.join(TABLES)})"
        w = r"(?P<who>younger|older)"
        n, b = r"(?P<number>\d{1,9}(?:\.\d{1,9})?)", r"(?:.*?\((?P<base>\d[\d,]{0,14}) )?"
        self._forms: tuple[tuple[re.Pattern[str], _Make], ...] = tuple(
            (re.compile(form, re.IGNORECASE), make)
            for form, make in (
                (rf"recommendation\b.*?\bpromote {p} in {r}", self._advise("favourite")),
                (rf"recommendation\b.*?\bask more people in {r}", self._advise("favourite")),
                (rf"recommendation\b.*?\blower the price of {p} in {r}", self._advise("price")),
                (rf"recommendation\b.*?\bleave the prices? of {p}\b", self._advise("price")),
                (rf"recommendation\b.*?\boffer {p} to all ages", self._advise("age")),
                (rf"recommendation\b.*?\boffer {p} to {w}", self._advise("age")),
                (rf"^chart of {p} by channel\b.*\d", self._chart),
                (rf"\bpeople in {r} like {p} best(?:.*?{n} of 10)?{b}", self._favourite),
                (rf"\btoo few people answered in {r}{b}", self._favourite),
                (rf"\b{p} costs {n} ?% more in {r}{b}", self._price),
                (rf"\b{p} costs about the same everywhere{b}", self._price),
                (rf"\b{w} people rate {p} {n} points above{b}", self._age),
                (rf"\byounger and older people rate {p} alike{b}", self._age),
                (rf"\bdiffer over {p} only in the {c} channel(?:, by {n})?{b}", self._channel),
                (rf"\bno single channel do age groups differ over {p}{b}", self._channel),
                (rf"\b{n} of the (?P<base>\d[\d,]{{0,14}}) rows of {t} are wrong", self._quality),
            )
        )

    def read(self, line: str) -> Statement | None:
        """The statement in a line; None if it has no known form."""
        if line not in self._known:
            self._known[line] = self._read(line.strip())
        return self._known[line]

    def _read(self, line: str) -> Statement | None:
        if line.lower().startswith("assumption"):
            said = line.lower()
            for ruling in RULINGS:
                for index, text in enumerate(_ASSUMPTIONS[ruling]):
                    if text in said:
                        return Assumed(ruling, index == 0)
            return None
        for form, make in self._forms:
            found = form.search(line)
            if found is not None:
                return make(found.groupdict())
        return None

    def _name(self, found: _Fields, key: str) -> str:
        return self._names[(found.get(key) or "").lower()]

    def _favourite(self, found: _Fields) -> Claim:
        few = not found.get("product")
        answer = "too few" if few else self._name(found, "product")
        value = None if few else _number(found)
        return Claim(Topic("favourite", self._name(found, "region")), answer, value, _base(found))

    def _price(self, found: _Fields) -> Claim:
        topic = Topic("price", self._name(found, "product"))
        answer = self._name(found, "region") if found.get("region") else "nowhere"
        return Claim(topic, answer, _number(found), _base(found))

    def _age(self, found: _Fields) -> Claim:
        topic = Topic("age", self._name(found, "product"))
        return Claim(topic, (found.get("who") or "alike").lower(), _number(found), _base(found))

    def _channel(self, found: _Fields) -> Claim:
        topic = Topic("channel", self._name(found, "product"))
        return Claim(topic, (found.get("where") or "none").lower(), _number(found), _base(found))

    def _quality(self, found: _Fields) -> Claim:
        topic = Topic("quality", (found.get("table") or "").lower())
        return Claim(topic, found.get("number") or "", None, _base(found))

    def _chart(self, found: _Fields) -> Charted:
        return Charted(Topic("channel", self._name(found, "product")))

    def _advise(self, kind: Kind) -> _Make:
        def make(found: _Fields) -> Advice:
            if kind == "favourite":
                answer = self._name(found, "product") if found.get("product") else "too few"
                return Advice(Topic(kind, self._name(found, "region")), answer)
            topic = Topic(kind, self._name(found, "product"))
            if kind == "price":
                return Advice(
                    topic, self._name(found, "region") if found.get("region") else "nowhere"
                )
            return Advice(topic, (found.get("who") or "alike").lower())

        return make


_Fields: TypeAlias = dict[str, str | None]
_Make: TypeAlias = Callable[[_Fields], Statement]


def _number(found: _Fields) -> float | None:
    number = found.get("number")
    return None if number is None else float(number)


def _base(found: _Fields) -> int:
    return int((found.get("base") or "0").replace(",", ""))
