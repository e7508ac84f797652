"""An adviser's knowledge: the file, the tables, the client's statements, and the unclear answers."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final, TypeVar

import msgspec

from ...engine.session.view import ActionSeen, View
from ...engine.text import text_of
from ...users.deferrals import is_deferral
from .language.advice import read_figures, read_questions
from .language.statements import Fact, is_accepted, read_answer, read_facts
from .plan import Plan, try_plan
from .world.household import Topic

__all__ = (
    "Costs",
    "File",
    "Finds",
    "Known",
    "Rules",
    "hear",
    "projection_key",
    "spending_of",
)


class File(msgspec.Struct, frozen=True):
    """The result of `ReadFile`."""

    place: str
    age: int
    salaries: tuple[int, ...]
    child: int
    home: int
    mortgage_monthly: int
    prepayment_limit_monthly: int
    life_cover_asked_by_bank: int
    cards: int
    cards_rate: float
    savings: int
    risk_form: str

    @property
    def boldness(self) -> int:
        """The client's mark on the form, 1 to 10."""
        words = self.risk_form.split()
        return next((int(word) for word in words if word.isdecimal()), 5)


class Costs(msgspec.Struct, frozen=True):
    """The result of `LookUpCosts`."""

    living: int
    property_tax: int
    studies: int


class Rules(msgspec.Struct, frozen=True):
    """The result of `LookUpRules`."""

    retirement_limit_monthly: int
    life_cover_per_100000_monthly: float
    life_cover_limit: int


class Finds(msgspec.Struct, kw_only=True):
    """The results of actions; grows as they are resolved.

    Attributes:
        file: the client's file.
        net: the household's income after tax, a month.
        costs: of living in its place.
        rules: the rules of its place.
        bad_year: loss in a bad year in per cent, by share of stocks.
        needed: savings needed a month, by (target, years, stocks).
        rows: projections by `projection_key`.
        failed: an action was refused.
    """

    file: File | None = None
    net: int | None = None
    costs: Costs | None = None
    rules: Rules | None = None
    bad_year: Mapping[int, float] = {}
    needed: dict[tuple[int, int, int], int] = {}
    rows: dict[str, Mapping[str, float]] = {}
    failed: bool = False

    def add(self, action: ActionSeen) -> None:
        """Learns the outcome of an action."""
        resolved = action.resolved
        if resolved is None:
            return
        if resolved.outcome != "ok":
            self.failed = True
            return
        found = resolved.observation
        match action.name:
            case "ReadFile":
                self.file = _as(File, found)
            case "LookUpTaxes":
                self.net = _as(_Taxes, found).net_monthly
            case "LookUpCosts":
                self.costs = _as(Costs, found)
            case "LookUpRules":
                self.rules = _as(Rules, found)
            case "LookUpMarket":
                self.bad_year = {int(s): lost for s, lost in _as(_Market, found).bad_year.items()}
            case "SavingNeeded":
                asked = _as(_Asked, action.arguments)
                key = (asked.target, asked.years, asked.stocks)
                self.needed[key] = _as(_Needed, found).monthly
            case "ComparePlans":
                goals = _as(_Goals, action.arguments)
                table = _as(_Table, found)
                for plan, row in zip(goals.plans, table.rows, strict=True):
                    key_ = projection_key(plan, goals.age, goals.income, goals.study)
                    self.rows[key_] = dict(zip(table.columns, row, strict=True))


class _Taxes(msgspec.Struct):
    net_monthly: int


class _Market(msgspec.Struct):
    bad_year: dict[str, float]


class _Asked(msgspec.Struct):
    target: int
    years: int
    stocks: int


class _Needed(msgspec.Struct):
    monthly: int


class _Goals(msgspec.Struct):
    plans: tuple[Plan, ...]
    age: int
    income: int
    study: int = 0


class _Table(msgspec.Struct):
    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


_T = TypeVar("_T")


def _as(kind: type[_T], found: object) -> _T:
    return msgspec.convert(found, kind)


def projection_key(plan: Plan, age: int, income: int, study: int) -> str:
    """Names what a plan was projected for."""
    return repr((*msgspec.structs.astuple(plan), age, income, study))


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """An adviser's knowledge.

    Attributes:
        finds: the results of its actions.
        wishes: the client's wishes as last understood, by topic.
        fresh: topics about which something was read since the adviser's last message.
        asked: topics asked about, with how often.
        unread: topics whose question got an answer that was not understood.
        shown: topics of which the client was shown a figure.
        silent: the last message is a human's, and nothing in it was understood.
        values: the wishes, with assumptions for the unknown ones.
    """

    finds: Finds
    wishes: Mapping[Topic, Fact]
    fresh: tuple[Topic, ...]
    asked: Mapping[Topic, int]
    unread: frozenset[Topic]
    shown: frozenset[Topic]
    silent: bool
    values: Mapping[Topic, int]


_DEFAULTS: Final[Mapping[Topic, int]] = {
    "loss": 12,
    "cushion": 3,
    "age": 65,
    "income": 0,
    "study": 0,
    "project": 0,
    "support": 0,
    "cover": 0,
    "prepay": 0,
}
_LIMITS: Final[Mapping[Topic, tuple[int, int]]] = {
    "loss": (1, 100),
    "cushion": (0, 120),
    "age": (40, 80),
    "income": (0, 1_000_000),
    "study": (0, 100),
    "project": (0, 100_000_000),
    "support": (0, 1_000_000),
    "cover": (0, 100),
    "prepay": (0, 1_000_000),
}
"""The least and most that is planned for a wish, whatever the client says."""

_PENSION_SHARE: Final = 0.6
"""Rule of thumb for what a pensioner needs: so much of today's income after tax."""

_PER_MARK: Final = 2.4
"""Rule of thumb: per cent of loss in a bad year for each mark on the form for risk."""

_LEAST_LOSS: Final = 5


def hear(view: View, finds: Finds) -> Known:
    """Reads the messages, and what people changed in the plan themselves."""
    wishes: dict[Topic, Fact] = {}
    asked: dict[Topic, int] = {}
    shown: set[Topic] = set()
    unread: set[Topic] = set()
    fresh: list[Topic] = []
    pending: tuple[Topic, ...] = ()
    silent = False
    for said in _said(view):
        if isinstance(said, Plan):
            facts: tuple[Fact, ...] = _facts_of(said, finds)
        elif said.mine:
            pending, silent, fresh = read_questions(said.text), False, []
            for topic in pending:
                asked[topic] = asked.get(topic, 0) + 1
            shown.update(figure.topic for figure in read_figures(said.text))
            continue
        else:
            facts = read_facts(said.text)
            if not facts and len(pending) == 1:
                answer = read_answer(said.text, pending[0])
                facts = (answer,) if answer is not None else ()
            settled = is_deferral(said.text) or is_accepted(said.text)
            silent = not facts and not settled
            if is_deferral(said.text):  # of several questions: the others may be asked again
                for topic in pending[1:]:
                    asked[topic] -= 1
            if not settled:
                answered = {fact.topic for fact in facts}
                unread.update(topic for topic in pending if topic not in answered)
            pending = ()
        for fact in facts:
            known = wishes.get(fact.topic)
            if known is not None and known.sure and not fact.sure:
                continue
            wishes[fact.topic] = fact
            unread.discard(fact.topic)
            if known != fact and fact.topic not in fresh:
                fresh.append(fact.topic)
    return Known(
        finds=finds,
        wishes=wishes,
        fresh=tuple(fresh),
        asked=asked,
        unread=frozenset(unread),
        shown=frozenset(shown),
        silent=silent,
        values=_values(finds, wishes),
    )


def _values(finds: Finds, wishes: Mapping[Topic, Fact]) -> Mapping[Topic, int]:
    values: dict[Topic, int] = {
        **_DEFAULTS,
        "income": round(_PENSION_SHARE * (finds.net or 0) / 50) * 50,
    }
    if finds.file is not None:
        values["loss"] = max(_LEAST_LOSS, round(_PER_MARK * finds.file.boldness))
    values.update({topic: fact.value for topic, fact in wishes.items()})
    return {
        topic: min(max(value, _LIMITS[topic][0]), _LIMITS[topic][1])
        for topic, value in values.items()
    }


class _Message(msgspec.Struct, frozen=True):
    text: str
    mine: bool


def _said(view: View) -> list[_Message | Plan]:
    """Messages after the request, and what people changed in plans themselves, in order."""
    found: list[tuple[int, _Message | Plan]] = [
        (m.version, _Message(m.text, m.actor == view.me))
        for m in view.messages
        if m.text != view.request
    ]
    before: Plan | None = None
    for record in view.records:
        if record.kind != "SnapshotTaken":
            continue
        plan = try_plan(text_of(getattr(record.event, "content", "")))
        if record.role == "human" and plan is not None and before is not None:
            found.append((record.version, _changed(before, plan)))
        before = plan or before
    return [said for _, said in sorted(found, key=lambda one: one[0])]


def _changed(before: Plan, after: Plan) -> Plan:
    """The lines that differ; what stayed as it was is -1."""
    was, now = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    return Plan(**{field: now[field] if now[field] != was[field] else -1 for field in now})


def _facts_of(changed: Plan, finds: Finds) -> tuple[Fact, ...]:
    """The wishes that a client's change to the plan implies."""
    facts = []
    if finds.costs is not None and finds.file is not None and changed.emergency >= 0:
        spending = spending_of(finds.file, finds.costs)
        facts.append(Fact("cushion", ceil(changed.emergency / spending - 0.05)))
    if changed.project >= 0:
        facts.append(Fact("project", changed.project))
    if changed.prepay >= 0:
        facts.append(Fact("prepay", changed.prepay))
    if changed.cover >= 0 and finds.file is not None:
        facts.append(Fact("cover", round(changed.cover / max(1, finds.file.salaries[0]))))
    return tuple(facts)


def spending_of(file: File, costs: Costs) -> int:
    """A household's essential spending per month."""
    return max(1, costs.living + costs.property_tax + file.mortgage_monthly)
