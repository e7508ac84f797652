"""An agent's knowledge, which comes only from messages and from the outcomes of its actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from ...engine.events import JSON, SnapshotTaken
from ...engine.session.view import ActionSeen, View
from ...engine.text import lines_of
from ...tasks.views import Outcomes
from ...users.deferrals import is_deferral
from .analysis import SHEETS, Rows, Sheet, claims_of, query_for, sheet_of
from .facts import DEFAULTS, Claim, Names, Ruling, Rulings, Topic
from .language.messages import MessageReader
from .language.rulings import asked_rulings
from .report import ReportReader

__all__ = ("Known", "Memory", "Wishes")


_ONE = "one"
"""The agent's word for the survey's subject, which no table names."""


class Wishes(msgspec.Struct, frozen=True):
    """The wishes and rulings that the human has told the agent.

    Attributes:
        topics: the topics that they asked about, the latest last.
        rulings: their rulings.
        advice: the topic on which they want a recommendation; None if they did not say.
        charts: products of which they want a chart.
        more: number of times that they wanted something better without saying what.
        short: they want less to read.
        lost: their last message named something, and was not understood.
        ruled: their last message was a ruling.
        vague: a name in it of which it is not clear what is asked.
    """

    topics: tuple[Topic, ...] = ()
    rulings: Mapping[Ruling, bool] = {}
    advice: Topic | None = None
    charts: tuple[str, ...] = ()
    more: int = 0
    short: bool = False
    lost: bool = False
    ruled: bool = False
    vague: str | None = None


@final
class Findings:
    """The findings that query results support.

    Attributes:
        rows: results by query; None for one that failed.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Rows | None] = {}
        self._claims: dict[tuple[str, bool], Mapping[Topic, Claim]] = {}

    def all(self, names: Names, rulings: Rulings) -> dict[Topic, Claim]:
        """All claims that the results so far allow, under rulings."""
        found: dict[Topic, Claim] = {}
        for sheet in SHEETS:
            found.update(self._sheet(sheet, names, rulings))
        return found

    def on(self, topic: Topic, names: Names, rulings: Rulings) -> Claim | None:
        """The claim on a topic; None if its query was not made."""
        return self._sheet(sheet_of(topic.kind), names, rulings).get(topic)

    def _sheet(self, sheet: Sheet, names: Names, rulings: Rulings) -> Mapping[Topic, Claim]:
        sql, within = query_for(sheet, rulings), rulings["within"]
        rows = self.rows.get(sql)
        if not rows:
            return {}
        if (sql, within) not in self._claims:
            self._claims[sql, within] = claims_of(sheet, rows, names, within=within)
        return self._claims[sql, within]


class Known(msgspec.Struct, frozen=True):
    """Everything an agent knows.

    Attributes:
        alone: whether the agent works alone.
        names: the names of the survey, as the schema has them; None before it was listed.
        wishes: the wishes and rulings that the human told it.
        asked: rulings that it has asked about.
        proposed: topics that it has proposed.
        findings: the results of its queries.
        charts: lines by query; None for one that failed.
        before: lines of its last report.
        theirs: lines that a human wrote into the report.
        settled: their claims there, by topic; these override the agent's findings.
    """

    alone: bool
    names: Names | None
    wishes: Wishes
    asked: frozenset[Ruling]
    proposed: frozenset[Topic]
    findings: Findings
    charts: Mapping[str, str | None]
    before: tuple[str, ...]
    theirs: tuple[str, ...]
    settled: Mapping[Topic, Claim] = {}

    @property
    def rulings(self) -> Rulings:
        """The rulings in use: the human's, and the default assumptions."""
        return {**DEFAULTS, **self.wishes.rulings}

    def claims(self) -> dict[Topic, Claim]:
        """All claims that it can make under the rulings in use."""
        return {} if self.names is None else self.findings.all(self.names, self.rulings)

    def claim(self, topic: Topic, rulings: Rulings | None = None) -> Claim | None:
        """Its claim on a topic under the rulings in use, or under the given ones; None if it has none."""
        if self.names is None:
            return None
        if topic in self.settled:
            return self.settled[topic]
        return self.findings.on(topic, self.names, rulings or self.rulings)


@final
class Memory:
    """Recalls what an agent knows from its view; keeps what it has read, so as not to read it twice."""

    def __init__(self) -> None:
        self._names: Names | None = None
        self._reader: MessageReader | None = None
        self._lines: ReportReader | None = None
        self._findings = Findings()
        self._charts: dict[str, str | None] = {}
        self._outcomes = Outcomes()

    def recall(self, view: View) -> Known:
        """Everything an agent can know from its view."""
        for action in self._outcomes.fresh(view):
            self._absorb(action)
        asked: set[Ruling] = set()
        offered: set[Topic] = set()
        wishes = Wishes()
        if self._reader is not None:
            wishes = _listen(view, self._reader, asked, offered)
        before, theirs = _reports(view)
        written = map(self._lines.read, theirs) if self._lines is not None else ()
        return Known(
            alone=not any(one.role == "human" for one in view.participants),
            names=self._names,
            wishes=wishes,
            asked=frozenset(asked),
            proposed=frozenset(offered),
            findings=self._findings,
            charts=self._charts,
            before=before,
            theirs=theirs,
            settled={one.topic: one for one in written if isinstance(one, Claim)},
        )

    def _absorb(self, action: ActionSeen) -> None:
        found = _observed(action)
        sql = str(action.arguments.get("sql", ""))
        if action.name == "Schema" and found is not None:
            self._names = _names(found)
            self._reader = MessageReader(self._names)
            self._lines = ReportReader(self._names)
        elif action.name == "Query":
            self._findings.rows[sql] = None if found is None else _rows(found)
        elif action.name == "Chart":
            self._charts[sql] = None if found is None else str(found["text"])


def _listen(view: View, reader: MessageReader, asked: set[Ruling], offered: set[Topic]) -> Wishes:
    """Reads the request and the messages in order; notes what the agent itself asked and offered."""
    topics: dict[Topic, None] = dict.fromkeys(reader.read(view.request).topics)
    rulings: dict[Ruling, bool] = {}
    charts: list[str] = []
    advice: Topic | None = None
    short = lost = ruled = False
    more = 0
    vague: str | None = None
    question: tuple[Ruling, ...] = ()
    offer: Topic | None = None
    for message in view.messages:
        if message.actor == view.me:
            question = asked_rulings(message.text)
            offer = reader.proposed(message.text)
            asked.update(question)
            offered.update(() if offer is None else (offer,))
            continue
        if message.text == view.request:
            continue
        heard = reader.read(message.text, question)
        wanted = (offer,) if heard.agreed and offer is not None and not heard.topics else ()
        for topic in (*wanted, *heard.topics):
            topics.pop(topic, None)  # the latest comes last
            topics[topic] = None
        rulings.update(heard.rulings)
        charts += heard.charts
        advice = heard.advice or advice
        short = short or heard.short
        ruled = bool(heard.rulings)
        unclear = not heard.understood and not is_deferral(message.text)
        lost = unclear and heard.specific
        more += unclear and not heard.specific
        vague = next(iter(heard.vague), None)
        question, offer = (), None
    return Wishes(tuple(topics), rulings, advice, tuple(charts), more, short, lost, ruled, vague)


def _reports(view: View) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of the agent's last report, and the lines that humans added to it."""
    standing: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    theirs: dict[str, None] = {}
    for record in view.records:
        event = record.event
        if isinstance(event, SnapshotTaken):
            lines = tuple(lines_of(event.content))
            if record.actor == view.me:
                own = lines
            else:
                theirs.update(dict.fromkeys(line for line in lines if line not in standing))
            standing = lines
    return own, tuple(line for line in theirs if line in standing)


def _observed(action: ActionSeen) -> Mapping[str, JSON] | None:
    resolved = action.resolved
    found = resolved.observation if resolved is not None and resolved.outcome == "ok" else None
    return found if isinstance(found, Mapping) else None


def _rows(found: Mapping[str, JSON]) -> Rows:
    rows = found.get("rows")
    if not isinstance(rows, list | tuple):
        return ()
    return [row for row in rows if isinstance(row, list | tuple)]


def _names(schema: Mapping[str, JSON]) -> Names:
    """The names in the schema; a region that is spelled in several ways is one."""
    regions = {name.strip().title() for name in _values(schema, "people", "region")}
    products = _values(schema, "ratings", "product")
    return Names(_ONE, tuple(sorted(regions)), tuple(sorted(products)))


def _values(schema: Mapping[str, JSON], table: str, column: str) -> list[str]:
    found: JSON = schema
    for key in (table, "columns", column, "values"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return [str(value) for value in found] if isinstance(found, Mapping) else []
