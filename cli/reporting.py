"""Builds the documents of ``duolog report`` from sources and options, and prints or saves them."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Literal, TypeAlias

import msgspec
from rich.console import Console

from ..engine.errors import InvalidInput
from ..engine.log.contract import EventLog
from ..experiments.sources import directory_of, is_file, judges_of, load
from ..scoring.columns.table import Columns
from ..scoring.comparison.agreement import agreement, review_agreement
from ..scoring.comparison.pairs import OUTCOME, PairBy, compare
from ..scoring.comparison.sensitivity import sensitivity
from ..scoring.index.query import SessionQuery, parse_query
from ..scoring.index.select import check_labels, select
from ..scoring.metrics import LABELS, Convention, EffortAxis, Numbers
from ..scoring.metrics.forks import compare_forks, without_forks
from ..scoring.oversight import Oversight, OversightReport, fold_oversight, summarise
from ..scoring.report import (
    FEWEST_DRAWN,
    Document,
    PagePart,
    TerminalDocument,
    agreement_document,
    compare_agents,
    comparison_document,
    document_csv,
    document_json,
    document_markdown,
    documents_page,
    explain,
    explanation_document,
    forks_document,
    make_report,
    of_task,
    oversight_document,
    report_document,
    sensitivity_document,
    tasks_of,
)
from ..scoring.report.comparing import MOST_TASKS
from ..scoring.report.summary import LISTED, by_rules_alone
from ..scoring.reviews import Reviews, read_reviews
from ..scoring.trajectory.options import Options
from .lookup import existing_log, one_named
from .output import print_text, say, say_left_out
from .runtime import run
from .text.terminal import screen
from .text.transcript import load_transcript
from .text.transcript_view import print_transcript

__all__ = (
    "EMBEDDED",
    "Analysis",
    "Asked",
    "Form",
    "analysis_of",
    "numbers_of",
    "page_of",
    "print_document",
    "report_of",
    "sessions_of",
    "table_of",
    "transcript_text",
)

EMBEDDED = 2_000_000
"""Characters of transcripts on a page at most; the other sessions say by which command to see them."""

_LISTED = 100_000  # sessions that a report lists one by one even if only text is wanted
_WIDTH = 110  # columns of a transcript

Analysis: TypeAlias = Literal[
    "forks", "compare", "sensitivity", "agreement", "oversight", "explain"
]
"""The analysis requested instead of the report's tables."""

Form: TypeAlias = Literal["text", "json", "csv", "markdown"]
"""The format in which a document is printed."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What to report on, and how.

    Attributes:
        sources: logs, files of trajectories, or a directory of tables.
        options: how to score.
        convention: how sessions are aggregated.
        task: the one whose sessions count; None for all.
        group_by: labels; None for the usual ones.
        bootstrap: resamples for the intervals.
        seed: the seed of the resampling.
        workers: processes that read a large log together; None for one for each processor.
        agents: those to compare.
        outcomes: what they are compared by; the rest is secondary.
        pair_by: what sessions of a pair share.
        session: the one to explain, or how its id begins.
        whole: list each session, which takes memory if there are many.
        axis: the effort that the curves have as their axis.
    """

    sources: Sequence[str]
    options: Options = Options()
    convention: Convention = "formal"
    task: str | None = None
    group_by: Sequence[str] | None = None
    bootstrap: int = 1000
    seed: int = 0
    workers: int | None = None
    agents: Sequence[str] = ()
    outcomes: Sequence[str] = (OUTCOME,)
    pair_by: PairBy = "problem"
    session: str = ""
    whole: bool = True
    axis: EffortAxis = "rounds"


def report_of(asked: Asked) -> Numbers:
    """The report on some sources.

    Raises:
        InvalidInput: the sources cannot give it.
        LogError: a log cannot be read.
    """
    return numbers_of(asked, sessions_of(asked))


def sessions_of(asked: Asked) -> Columns:
    """The sessions of some sources, without forks of sessions that are included already.

    Raises:
        InvalidInput: the sources cannot give them.
        LogError: a log cannot be read.
    """
    return _without_forks(_loaded(asked, asked.options))


def _loaded(asked: Asked, options: Options) -> Columns:
    """The sessions of some sources, of the task that is asked for."""
    found = load(asked.sources, options, workers=asked.workers, on_ended=_say_ended)
    return found if asked.task is None else of_task(found, asked.task)


def analysis_of(asked: Asked, analysis: Analysis) -> Document:
    """The document of another analysis than the report.

    Raises:
        InvalidInput: the sources cannot give it.
        LogError: a log cannot be read.
    """
    taus, bootstrap, seed = asked.options.taus, asked.bootstrap, asked.seed
    if analysis == "sensitivity":
        return sensitivity_document(
            sensitivity(_by_judge(asked), taus=taus, bootstrap=bootstrap, seed=seed)
        )
    if analysis == "agreement":
        reviews = _reviews(asked.sources)
        rounds = agreement(_ratings(asked, reviews), resamples=bootstrap, seed=seed)
        reviewed = review_agreement(reviews, resamples=bootstrap, seed=seed) if reviews else None
        return agreement_document(rounds, reviewed)
    if analysis == "oversight":
        by = asked.group_by or ("agent",)
        if len(by) > 1:
            raise InvalidInput(f"--oversight groups by one label, not by {', '.join(by)}")
        return oversight_document(oversight_of(asked.sources, by[0]))
    sessions = _loaded(asked, asked.options)
    if analysis == "forks":
        return forks_document(compare_forks(sessions, bootstrap=bootstrap, seed=seed))
    kept = _without_forks(sessions)
    if analysis == "compare":
        weak = by_rules_alone({one for some in kept.judges.values for one in some})
        return comparison_document(
            compare(
                kept,
                asked.agents,
                taus=taus,
                outcomes=asked.outcomes,
                pair_by=asked.pair_by,
                bootstrap=bootstrap,
                seed=seed,
            ),
            drops=asked.options.judge != "auto" or not weak,
        )
    return _explained(asked, sessions, kept)


def oversight_of(
    sources: Sequence[str], by: str, query: SessionQuery | None = None
) -> OversightReport:
    """The oversight of the sessions in some logs, grouped by a label.

    Args:
        sources: the logs.
        by: the label.
        query: which sessions; None for all.

    Raises:
        InvalidInput: a source is not a log, or no session has the label, or one that the query names.
        LogError: a log cannot be read.
    """
    if directory_of(sources) is not None or any(map(is_file, sources)):
        raise InvalidInput("oversight follows from the events of a log: give the log itself")

    async def read(source: str) -> list[tuple[str, Oversight]]:
        async with existing_log(source) as log:
            return await oversight_by(log, by, query)

    groups: dict[str, list[Oversight]] = {}
    for source in sources:
        for group, one in run(partial(read, source)):
            groups.setdefault(group, []).append(one)
    if by not in LABELS and set(groups) == {""}:
        raise InvalidInput(f"no session has a label {by!r} to group by")
    return OversightReport(
        by=by, groups={group: summarise(some) for group, some in sorted(groups.items())}
    )


async def oversight_by(
    log: EventLog, by: str, query: SessionQuery | None = None
) -> list[tuple[str, Oversight]]:
    """The oversight of each session that meets a query, with its value of a label.

    Raises:
        InvalidInput: the query names a label that no session has.
        LogError: the log cannot be read.
    """
    chosen: dict[str, str] = {}
    if query is not None:
        await check_labels(log, query, None)
    if query is not None and query.needs_lines:
        chosen = {one.session: one.group.get(by, "") async for one in select(log, query)}
    else:
        async for one in log.sessions():
            if query is None or query.admits(one):
                chosen[one.session] = one.group.get(by, "")
    found = await fold_oversight(log.read_all(), wanted=chosen.__contains__)
    return [(chosen[session], one) for session, one in found.items()]


def numbers_of(asked: Asked, sessions: Columns) -> Numbers:
    """The report on sessions that were read."""
    return make_report(
        sessions,
        convention=asked.convention,
        taus=asked.options.taus,
        group_by=asked.group_by,
        bootstrap=asked.bootstrap,
        seed=asked.seed,
        scores=asked.whole or len(sessions) <= _LISTED,
        axis=asked.axis,
    )


def _without_forks(sessions: Columns) -> Columns:
    found = without_forks(sessions)
    say_left_out(len(sessions) - len(found))
    return found


def _explained(asked: Asked, sessions: Columns, kept: Columns) -> Document:
    """A session's numbers; under ``paper`` they depend on the cut of its group."""
    ids = [*sessions.session]
    row = ids.index(one_named(asked.session, ids, "the report"))
    report = numbers_of(msgspec.structs.replace(asked, bootstrap=0), kept)
    mine = sessions.group(row, report.group_by)
    cuts = [
        group.max_step
        for group in report.groups
        if group.group == mine and group.baseline == sessions.baseline[row]
    ]
    return explanation_document(
        explain(
            sessions,
            session=sessions.session[row],
            convention=report.convention,
            taus=report.taus,
            max_step=cuts[0] if cuts else None,
        )
    )


def _by_judge(asked: Asked) -> dict[str, Columns]:
    """The sessions with the ratings of each judge, without forks of sessions included already.

    Raises:
        InvalidInput: no round has a rating, or a source does not say who rated.
    """
    judges = judges_of(asked.sources)
    if not judges:
        raise InvalidInput(f"no round has a progress rating in {', '.join(asked.sources)}")
    options = [msgspec.structs.replace(asked.options, judge=judge) for judge in judges]
    found = [_loaded(asked, one) for one in options]
    return dict(zip(judges, map(without_forks, found), strict=True))


def _reviews(sources: Sequence[str]) -> dict[str, Reviews]:
    """The reviews in some logs, by session; files and directories of tables hold none."""
    reviewed = parse_query(["reviewer!=none"])

    async def read(source: str) -> dict[str, Reviews]:
        async with existing_log(source) as log:
            names = [one.session async for one in select(log, reviewed)]
            return {name: await read_reviews(log, name) for name in names}

    if directory_of(sources) is not None:
        return {}
    found: dict[str, Reviews] = {}
    for source in sources:
        if not is_file(source):
            found |= run(partial(read, source))
    return found


def _ratings(asked: Asked, reviews: Mapping[str, Reviews]) -> dict[str, list[dict[str, int]]]:
    """By session, the ratings of each round by judge, and by reviewer if rounds are handoffs."""
    rounds: dict[str, dict[int, dict[str, int]]] = {}
    judges = _by_judge(asked) if not reviews or judges_of(asked.sources) else {}
    for judge, columns in judges.items():
        ends, given = columns.starts.tolist(), columns.rounds.rating.tolist()
        for row, session in enumerate(columns.session):
            found = rounds.setdefault(session, {})
            for number, rating in enumerate(given[ends[row] : ends[row + 1]], start=1):
                if rating:
                    found.setdefault(number, {})[judge] = rating
    for session, some in reviews.items() if asked.options.rounds == "handoff" else ():
        for rated in some.ratings:
            if rated.round is not None:
                found = rounds.setdefault(session, {})
                found.setdefault(rated.round, {})[f"reviewer {rated.by}"] = rated.rating
    return {session: list(found.values()) for session, found in rounds.items()}


def print_document(document: Document, form: Form = "text") -> None:
    """Prints a document on the standard output."""
    forms: dict[Form, Callable[[Document], str]] = {
        "json": document_json,
        "csv": document_csv,
        "markdown": document_markdown,
    }
    if form == "text":
        screen().print(TerminalDocument(document))
    else:
        print_text(forms[form](document))


def table_of(asked: Asked, sessions: Columns, *, drawn: bool) -> Document:
    """The document of the report on sessions that were read; ``drawn``: with its figures.

    With several tasks, figures leave out rows with few sessions if others have enough.
    """
    report = numbers_of(asked, sessions)
    mixed = len({group.group.get("task") for group in report.groups}) > 1
    mixed = mixed and any(group.sessions >= FEWEST_DRAWN for group in report.groups)
    return report_document(
        report,
        whole=drawn,
        weak=asked.options.judge != "auto",
        fewest=FEWEST_DRAWN if mixed else 1,
    )


def page_of(sessions: Columns, asked: Asked) -> str:
    """The page of a report: task by task, with transcripts as long as they are not too much text.

    Raises:
        LogError: a log cannot be read.
    """
    by_task = asked.group_by is None or "task" in asked.group_by
    names = tasks_of(sessions) if by_task else {}
    wanted = {*sessions.session} if 0 < len(sessions) <= LISTED else set[str]()
    transcripts: dict[str, str] = {}
    commands: dict[str, str] = {}
    for source in asked.sources if wanted else ():
        if directory_of([source]) is not None or is_file(source):
            how = ["duolog", "report", source, "--explain"]
            commands |= {name: shlex.join([*how, name]) for name in wanted - commands.keys()}
        else:
            room = EMBEDDED - sum(map(len, transcripts.values()))
            here = run(partial(_read, source, wanted, room, asked.options))
            commands |= {name: shlex.join(["duolog", "show", source, name]) for name in here}
            transcripts |= {name: text for name, text in here.items() if text is not None}
    pages = []
    shown: Sequence[str | None] = [*names][:MOST_TASKS]
    for task in shown or [None]:
        compared = compare_agents(
            sessions,
            task=task,
            taus=asked.options.taus,
            convention=asked.convention,
            group_by=asked.group_by,
            bootstrap=asked.bootstrap,
            seed=asked.seed,
            axis=asked.axis,
        )
        places = {one.session: place for place, one in enumerate(compared.report.scores)}
        links = {name: f"#t{place}" for name, place in places.items() if name in transcripts}
        pages.append(
            PagePart(
                name=task or "",
                document=compared.document(
                    links=links, commands=commands, weak=asked.options.judge != "auto"
                ),
                transcripts={
                    f"t{place}": (name, transcripts[name])
                    for name, place in places.items()
                    if name in transcripts
                },
            )
        )
    return documents_page(pages)


async def _read(
    source: str, wanted: AbstractSet[str], room: int, options: Options
) -> dict[str, str | None]:
    """The sessions of a log that are wanted, with their transcripts as far as there is room."""
    found: dict[str, str | None] = {}
    async with existing_log(source) as log:
        names = [one.session async for one in log.sessions() if one.session in wanted]
        for name in names:
            text = await transcript_text(log, name, options) if room > 0 else ""
            room -= len(text)
            found[name] = text if text and room >= 0 else None
    return found


async def transcript_text(log: EventLog, session: str, options: Options) -> str:
    """The transcript of a session as text, as ``duolog show`` prints it."""
    summary = await log.summary(session)
    file = io.StringIO()
    console = Console(
        file=file, width=_WIDTH, markup=False, highlight=False, emoji=False, no_color=True
    )
    print_transcript(console, await load_transcript(log, summary, options), full=False)
    return file.getvalue().strip()


def _say_ended(how: str) -> None:
    say(f"a process that read the log with this one has ended ({how}): its part is read again")
