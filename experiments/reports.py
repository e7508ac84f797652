"""Reports from Python: the numbers of ``duolog report``, as objects for programs and notebooks."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, final

from ..engine.errors import InvalidInput, MissingExtra
from ..engine.text import suggestion
from ..scoring.trajectory.options import Options

if TYPE_CHECKING:  # what computes and shows numbers is loaded with the first report
    from matplotlib.figure import Figure

    from ..scoring.columns.table import Columns
    from ..scoring.comparison.pairs import Comparison, PairBy
    from ..scoring.metrics import Convention, EffortAxis, Group, Numbers
    from ..scoring.report import Document
    from ..scoring.report.export import Table

__all__ = ("AgentComparison", "Plot", "Report", "compare", "report")

_T = TypeVar("_T")
_WIDTH = 110  # columns of a report as text


@final
class Plot:
    """A figure of a report; a notebook shows it.

    Attributes:
        figure: the figure of matplotlib.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the figure to a file, whose ending says the format: ``.png``, ``.svg`` or ``.pdf``."""
        self.figure.savefig(file)

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.figure.savefig(data, format="png", dpi=150)
        return data.getvalue()


@final
class Report:
    """The report on the sessions of a log. A notebook shows its table; ``print`` does so in text.

    Make one with ``duolog.report``.
    """

    def __init__(self, numbers: Numbers, sessions: Columns) -> None:
        self._numbers = numbers
        self._sessions = sessions

    @property
    def groups(self) -> tuple[Group, ...]:
        """The numbers of each group of sessions; by default a group is what one agent did with one user."""
        return self._numbers.groups

    @property
    def numbers(self) -> Numbers:
        """All numbers, with how they were computed."""
        return self._numbers

    @property
    def sessions(self) -> Columns:
        """The columns of the sessions that the report is about, without forks."""
        return self._sessions

    def to_json(self) -> str:
        """The report as ``duolog report --json`` prints it."""
        from ..scoring.report import document_json

        return document_json(self._document())

    def to_pandas(self, table: Table = "groups") -> Any:  # noqa: ANN401 - a library that may be absent
        """A table of the report as a ``pandas.DataFrame``.

        Args:
            table: ``groups``, ``curves``, ``buckets`` or ``sessions``.

        Raises:
            InvalidInput: there is no such table.
            MissingExtra: pandas is not installed.
        """
        from ..scoring.report import to_dataframe

        return to_dataframe(self._numbers, table, library="pandas")

    def plot(self, name: str = "curve") -> Plot:
        """A figure of the report.

        Args:
            name: ``curve``, ``tokens``, ``ratio``, ``survival`` or ``incidence``.

        Raises:
            InvalidInput: the report has no such figure.
            MissingExtra: matplotlib is not installed.
        """
        from ..scoring.report import report_document
        from ..scoring.report.drawings import curve_name

        if name == "curve":
            name = curve_name(self._numbers.axis)
        figures = {figure.name: figure for figure in report_document(self._numbers).figures}
        if name not in figures:
            raise InvalidInput(f"unknown figure {name!r}{suggestion(name, figures)}")
        try:
            from matplotlib import rc_context
        except ModuleNotFoundError as error:
            raise MissingExtra("plots", "a figure") from error
        from ..scoring.report.plots import SETTINGS, draw_figure

        settings: Any = dict(SETTINGS)  # typed differently from version to version of matplotlib
        with rc_context(settings):
            return Plot(draw_figure(figures[name]))

    def __str__(self) -> str:
        return _text(self._document())

    def _repr_html_(self) -> str:
        return _html(self._document())

    def _document(self) -> Document:
        from ..scoring.report import report_document

        return report_document(self._numbers, whole=False)


@final
class AgentComparison:
    """Agents compared in pairs on the same problems. A notebook shows it as a table.

    Make one with ``duolog.compare``.

    Attributes:
        pairs: one comparison for each pair of agents in each group.
    """

    def __init__(self, found: Sequence[Comparison]) -> None:
        self.pairs = tuple(found)

    def to_json(self) -> str:
        """The comparison as ``duolog report --compare AGENTS --json`` prints it."""
        from ..scoring.report import document_json

        return document_json(self._document())

    def __str__(self) -> str:
        return _text(self._document())

    def _repr_html_(self) -> str:
        return _html(self._document())

    def _document(self) -> Document:
        from ..scoring.report import comparison_document

        return comparison_document(self.pairs)


def report(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    convention: Convention = "formal",
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    options: Options | None = None,
    workers: int | None = None,
    effort: EffortAxis = "rounds",
) -> Report:
    """The report on sessions, with the same numbers as ``duolog report``.

    Call it from anywhere, a notebook included; it returns once the report is complete. In other
    asynchronous code, call it in a thread.

    Args:
        sources: logs, files of trajectories, or a directory of Parquet files; a path or URL, or several.
        convention: ``formal``, or ``paper`` for the choices of the published analysis.
        group_by: the labels that make groups; None for the usual ones.
        bootstrap: resamples for the intervals; 0 for none.
        seed: the seed of the resampling.
        options: how sessions are scored: tolerances, rounds, whose utility and ratings count.
        workers: processes that read a large log; None for one for each processor.
        effort: the axis of the curves: ``rounds``, ``minutes``, ``read`` or ``written``.

    Raises:
        InvalidInput: a source is neither a log nor a file of trajectories, or an option is not valid.
        LogError: a log cannot be read.
    """
    from ..scoring.metrics.forks import without_forks
    from ..scoring.report import make_report
    from .sources import load

    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    places = [os.fspath(source) for source in sources]
    usual = Options(rounds="human-turn") if convention == "paper" else Options()
    scored = usual if options is None else options

    def make() -> Report:
        sessions = without_forks(load(places, scored, workers=workers))
        numbers = make_report(
            sessions,
            convention=convention,
            taus=scored.taus,
            group_by=group_by,
            bootstrap=bootstrap,
            seed=seed,
            axis=effort,
        )
        return Report(numbers, sessions)

    return _outside_a_loop(make)


def compare(
    report: Report,
    *agents: str,
    outcomes: Sequence[str] = ("overall",),
    pair_by: PairBy = "problem",
    bootstrap: int = 1000,
    seed: int = 0,
) -> AgentComparison:
    """Compares agents in pairs on the same problems, as ``duolog report --compare`` does.

    Args:
        report: holds the sessions.
        agents: at least two of its agents.
        outcomes: the quantities that are tested; all others are secondary.
        pair_by: ``problem``, or ``instance`` for sessions whose problems are not known.
        bootstrap: resamples for the intervals; 0 for none.
        seed: the seed of the resampling and of the sign flips.

    Raises:
        InvalidInput: fewer than two agents are named, the report has no such agent or outcome, or the
            problems of its sessions are not known.
    """
    from ..scoring.comparison import pairs

    found = pairs.compare(
        report.sessions,
        agents,
        taus=report.numbers.taus,
        outcomes=outcomes,
        pair_by=pair_by,
        bootstrap=bootstrap,
        seed=seed,
    )
    return AgentComparison(found)


def _outside_a_loop(work: Callable[[], _T]) -> _T:
    """Runs work that starts event loops; inside a running loop, uses another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, thread_name_prefix="duolog-report") as thread:
        return thread.submit(work).result()


def _html(document: Document) -> str:
    from ..scoring.report import document_html

    return document_html(document)


def _text(document: Document) -> str:
    from rich.console import Console

    from ..scoring.report import TerminalDocument

    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, markup=False, highlight=False, emoji=False)
    console.print(TerminalDocument(document))
    return file.getvalue()
