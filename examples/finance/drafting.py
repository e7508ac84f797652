"""Drafts a plan from what an adviser knows, and says which look-ups it takes.

The order is that of any textbook: a month at hand, cards, what is coming up, the reserve, and the rest
invested; each month the cover, what the client wants for the mortgage and the studies, and retirement
with what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from ...engine.events import JSON
from ...engine.session.decisions import Act
from .knowledge import Costs, File, Finds, Known, Rules, outlook_key, spending_of
from .plan import Plan
from .world.household import Topic, annuity

__all__ = ("Draft", "draft", "look_ups")

_STUDY_AGE: Final = 18
_CONFIDENCE: Final = 78
_CARD_YEARS: Final = 2
_STEPS: Final = (0, 10, 20)
"""The drafts that are compared: per cent of stocks below the most that the client could bear."""


class Draft(NamedTuple):
    """A plan and what it leads to.

    Attributes:
        plan: what is proposed.
        row: its outlook, see ``actions.outlook``.
    """

    plan: Plan
    row: Mapping[str, float]


class _Basis(NamedTuple):
    file: File
    net: int
    costs: Costs
    rules: Rules


def look_ups(known: Known) -> tuple[Act, ...]:
    """The actions that are needed before a draft; none if it can be made, or if one was refused."""
    finds = known.finds
    if finds.failed:
        return ()
    if finds.file is None:
        return (Act("ReadFile"), Act("LookUpMarket"))
    basis = _basis(finds)
    if basis is None:
        return _tables(finds.file)
    missing = [ask for stocks in _shares(known) for ask in _study(known, basis, stocks)]
    if missing:
        return tuple(missing)
    plans = tuple(_plan(known, basis, stocks) for stocks in _shares(known))
    values = known.values
    if all(_key(plan, values) in finds.rows for plan in plans):
        return ()
    goals = {"age": values["age"], "income": values["income"], "study": values["study"]}
    shown = [msgspec.to_builtins(plan) for plan in plans]
    return (Act("ComparePlans", {"plans": shown, **goals}),)


def draft(known: Known) -> Draft | None:
    """The best of the compared plans; None while look-ups are missing.

    Best is the one with the better chances; of two that are alike, the one with fewer stocks.
    """
    basis = _basis(known.finds)
    if basis is None:
        return None
    values = known.values
    best: tuple[float, int, Draft] | None = None
    for stocks in _shares(known):
        if any(True for _ in _study(known, basis, stocks)):
            return None
        plan = _plan(known, basis, stocks)
        row = known.finds.rows.get(_key(plan, values))
        if row is None:
            return None
        chance = min(_ENOUGH, row["retirement_chance"])
        if values["study"]:
            chance += min(_ENOUGH, row["study_chance"])
        if best is None or (chance, -stocks) > best[:2]:
            best = (chance, -stocks, Draft(plan, row))
    return best[2] if best is not None else None


_ENOUGH: Final = 76
"""A chance above this many per cent is worth no more stocks."""


def _basis(finds: Finds) -> _Basis | None:
    if finds.file is None or finds.net is None or finds.costs is None or finds.rules is None:
        return None
    return _Basis(finds.file, finds.net, finds.costs, finds.rules)


def _tables(file: File) -> tuple[Act, ...]:
    salaries = [salary for salary in file.salaries if salary] or [0]
    costs: dict[str, JSON] = {
        "place": file.place,
        "adults": 2,
        "child": file.child,
        "both_work": len(salaries) > 1,
        "home": file.home,
    }
    return (
        Act("LookUpTaxes", {"place": file.place, "salaries": salaries}),
        Act("LookUpCosts", costs),
        Act("LookUpRules", {"place": file.place, "age": file.age, "gross": sum(file.salaries)}),
    )


def _shares(known: Known) -> tuple[int, ...]:
    """The shares of stocks to compare: the most that the client could bear, and fewer."""
    table = known.finds.bad_year
    bearable = known.values["loss"] + 0.05
    most = max((stocks for stocks, lost in table.items() if lost <= bearable), default=0)
    return tuple(dict.fromkeys(max(0, most - step) for step in _STEPS))


def _study_goal(known: Known, basis: _Basis) -> tuple[int, int]:
    """What the studies will cost the client, and in how many years."""
    target = round(basis.costs.studies * known.values["study"] / 100)
    return target, max(1, _STUDY_AGE - basis.file.child)


def _study(known: Known, basis: _Basis, stocks: int) -> list[Act]:
    """The look-up of what has to be saved for studies, if it is missing."""
    target, years = _study_goal(known, basis)
    if not target or (target, years, stocks) in known.finds.needed:
        return []
    asked = {"target": target, "years": years, "stocks": stocks, "confidence": _CONFIDENCE}
    return [Act("SavingNeeded", asked)]


def _plan(known: Known, basis: _Basis, stocks: int) -> Plan:
    values, file = known.values, basis.file
    spending = spending_of(file, basis.costs)
    reserve = values["cushion"] * spending
    left = file.savings
    emergency = min(left, spending)
    left -= emergency
    cards = min(left, file.cards)
    left -= cards
    project = min(left, values["project"])
    left -= project
    more = min(left, max(0, -(-reserve // 100) * 100 - emergency))
    emergency, left = emergency + more, left - more

    cover = max(file.life_cover_asked_by_bank, values["cover"] * file.salaries[0])
    cover = min(cover, basis.rules.life_cover_limit)
    month = basis.net - spending - values["support"] - _premium(basis, cover)
    owed = file.cards - cards
    cards_monthly = annuity(owed, file.cards_rate, _CARD_YEARS) if owed else 0
    month = max(0, month - cards_monthly)
    prepay = min(values["prepay"], file.prepayment_limit_monthly, month)
    month -= prepay
    target, years = _study_goal(known, basis)
    needed = known.finds.needed.get((target, years, stocks), 0)
    study = min(-(-needed // 10) * 10, month)
    month -= study
    return Plan(
        emergency=emergency,
        cards=cards,
        project=project,
        invested=left,
        cards_monthly=cards_monthly,
        study=study,
        retirement=min(month, basis.rules.retirement_limit_monthly) // 10 * 10,
        prepay=prepay,
        cover=cover,
        stocks=stocks,
    )


def _premium(basis: _Basis, cover: int) -> int:
    return round(cover / 100_000 * basis.rules.life_cover_per_100000_monthly + 0.5)


def _key(plan: Plan, values: Mapping[Topic, int]) -> str:
    return outlook_key(plan, values["age"], values["income"], values["study"])
