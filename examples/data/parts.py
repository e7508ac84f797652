"""The parts of a report, by which models give it: statements, from which its lines are written."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from ...engine.errors import InvalidInput
from ...tasks.actions import typed_output
from .facts import Advice, Claim, Ruling, Topic
from .report import say_advice, say_assumption, say_claim

__all__ = ("FORM",)


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="states"):
    """A statement."""


class Favourite(_Part, frozen=True, tag="favourite"):
    """People in a region like a product best, with its mean rating and the number of answers."""

    region: str
    product: str
    mean: float
    answers: int


class TooFew(_Part, frozen=True, tag="too few"):
    """Too few people answered in a region to name a favourite."""

    region: str
    answers: int


class Dearer(_Part, frozen=True, tag="dearer"):
    """A product costs so many percent more in a region than elsewhere."""

    product: str
    region: str
    percent: float
    prices: int


class SamePrice(_Part, frozen=True, tag="same price"):
    """A product costs about the same everywhere."""

    product: str
    prices: int


class AgesDiffer(_Part, frozen=True, tag="ages differ"):
    """Younger or older people rate a product so many points above the others."""

    product: str
    higher: Literal["younger", "older"]
    points: float
    answers: int


class AgesAlike(_Part, frozen=True, tag="ages alike"):
    """Younger and older people rate a product alike."""

    product: str
    answers: int


class OneChannel(_Part, frozen=True, tag="one channel"):
    """Age groups differ over a product only in one channel, by so many points."""

    product: str
    channel: Literal["app", "counter", "delivery"]
    points: float
    answers: int


class NoChannel(_Part, frozen=True, tag="no channel"):
    """Age groups differ over a product in no single channel."""

    product: str
    answers: int


class WrongRows(_Part, frozen=True, tag="wrong rows"):
    """So many of the rows of a table are wrong."""

    table: Literal["prices", "ratings"]
    wrong: int
    rows: int


class Assumption(_Part, frozen=True, tag="assumption"):
    """The pilot wave, staff, zeros as ratings or airport prices count, or ages are compared within channels."""

    about: Ruling
    holds: bool


class Recommendation(_Part, frozen=True, tag="recommendation"):
    """A conclusion from a finding: its kind, its region or product, and the answer acted upon.

    The answer is a product or ``too few``; a region or ``nowhere``; ``younger``, ``older`` or ``alike``.
    """

    kind: Literal["favourite", "price", "age"]
    about: str
    answer: str


class Chart(_Part, frozen=True, tag="chart"):
    """The line that the action Chart gave."""

    line: str


class Remark(_Part, frozen=True, tag="remark"):
    """Any other line."""

    text: str


Part: TypeAlias = (
    Favourite
    | TooFew
    | Dearer
    | SamePrice
    | AgesDiffer
    | AgesAlike
    | OneChannel
    | NoChannel
    | WrongRows
    | Assumption
    | Recommendation
    | Chart
    | Remark
)


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The statements of a report, a line each."""

    lines: tuple[Part, ...]


def _claim(part: Part) -> Claim | None:
    """The finding in a part; None if it is not one."""
    match part:
        case Favourite(region, product, mean, answers):
            return Claim(Topic("favourite", region), product, mean, answers)
        case TooFew(region, answers):
            return Claim(Topic("favourite", region), "too few", None, answers)
        case Dearer(product, region, percent, prices):
            return Claim(Topic("price", product), region, percent, prices)
        case SamePrice(product, prices):
            return Claim(Topic("price", product), "nowhere", None, prices)
        case AgesDiffer(product, higher, points, answers):
            return Claim(Topic("age", product), higher, points, answers)
        case AgesAlike(product, answers):
            return Claim(Topic("age", product), "alike", None, answers)
        case OneChannel(product, channel, points, answers):
            return Claim(Topic("channel", product), channel, points, answers)
        case NoChannel(product, answers):
            return Claim(Topic("channel", product), "none", None, answers)
        case WrongRows(table, wrong, rows):
            return Claim(Topic("quality", table), str(wrong), None, rows)
        case _:
            return None


def _line(part: Part) -> str:
    claim = _claim(part)
    if claim is not None:
        return say_claim(claim)
    match part:
        case Assumption(about, holds):
            return say_assumption(about, holds=holds)
        case Recommendation(kind, about, answer):
            return say_advice(Advice(Topic(kind, about), answer))
        case Chart(line) if not line.startswith("Chart of "):
            raise InvalidInput(f"{line!r} is not a chart: copy the line that the action Chart gave")
        case Chart(line):
            return line
        case Remark(text):
            return text
    raise InvalidInput(f"{part!r} is not a line of a report")


def _write(report: Report) -> str:
    lines = [_line(part) for part in report.lines]
    broken = next((line for line in lines if len(line.splitlines()) != 1), None)
    if broken is not None:
        raise InvalidInput(f"{broken!r} is not one line: give each statement as a separate part")
    return "\n".join(lines)


def _read(text: str) -> Report:
    return Report(tuple(Remark(line) for line in text.splitlines() if line.strip()))


FORM: Final = typed_output(Report, _write, _read)
"""How models give the output."""
