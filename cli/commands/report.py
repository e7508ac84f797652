"""``duolog report``: the paper's table of a log, or of a file of trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import choices, example, numbers, one_of, only_one
from ..output import output_rules, print_json, say
from ..root import app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...engine.log.exchange.output_file import OutputRules
    from ..reporting import Analysis, Asked, Form

__all__ = ("print_report", "report_command", "report_json")


def _print_schema(wanted: bool) -> None:
    """Prints the JSON Schema, and ends there."""
    if wanted:
        from ...scoring.report import report_schema

        print_json(report_schema())
        raise typer.Exit


_FORMATS = ("png", "svg", "pdf")


@app.command(
    "report",
    short_help="Prints the paper's table; draws the figures.",
    epilog=example(
        "duolog report demo.db",
        "duolog report demo.db --figures figures --html report.html",
        "duolog report mixed.db --only-task travel",
        "duolog report trajectories.jsonl --convention paper --json",
        "duolog report demo.db --explain travel-3-two-stage",
        "duolog report demo.db --notebook report.ipynb",
        "duolog report demo.db --compare one-stage,two-stage --outcome overall,drop@2",
        "duolog report tables --json",
        note="A directory of tables is what duolog export --format parquet writes; it gives the table, for "
        "millions of sessions, and no other analysis.",
    ),
)
def report_command(
    sources: options.Sources,
    convention: Annotated[
        Literal["formal", "paper"],
        typer.Option(
            help="The formulas of the paper to the letter, or as its published analysis computes."
        ),
    ] = "formal",
    rounds: Annotated[
        Literal["handoff", "human-turn"] | None,
        typer.Option(
            help="When a round begins: after a handoff, or with each human turn.",
            show_default="handoff; human-turn with --convention paper",
        ),
    ] = None,
    tau: options.Taus = "1,2,3",
    only_task: Annotated[
        str | None, typer.Option(metavar="TASK", help="Report on the sessions of this task only.")
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Labels to group sessions by, separated by commas.",
            show_default="agent,model,user,task",
        ),
    ] = None,
    utility: options.Utility = None,
    effort: Annotated[
        Literal["rounds", "seconds", "tokens_read", "tokens_written"],
        typer.Option(help="Measure of effort against which the curves show utility."),
    ] = "rounds",
    judge: options.Judge = "auto",
    bootstrap: options.Resamples = 1000,
    seed: options.ResamplingSeed = 0,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of processes that read a large log together.",
            show_default="one for each processor",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION", help="Explain how the numbers of one session are computed."
        ),
    ] = None,
    forks: Annotated[
        bool, typer.Option("--forks", help="Compare each fork with its origin instead.")
    ] = False,
    compare: options.Compare = None,
    outcome: options.Outcome = None,
    pair_by: options.PairBy = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Show instead how the drop depends on judge, threshold and missing ratings.",
        ),
    ] = False,
    agreement: Annotated[
        bool, typer.Option("--agreement", help="Show instead how far the judges agree.")
    ] = False,
    oversight: Annotated[
        bool,
        typer.Option(
            "--oversight", help="Show instead how people approve, interrupt and correct agents."
        ),
    ] = False,
    as_json: options.NumbersAsJson = False,
    json_schema: Annotated[
        bool,
        typer.Option(
            "--json-schema",
            callback=_print_schema,
            is_eager=True,
            help="Print the JSON Schema of --json, and exit.",
        ),
    ] = False,
    as_csv: options.RowsAsCsv = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables in Markdown.")
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Draw the figures into a directory, with captions as text."
        ),
    ] = None,
    figure_formats: Annotated[
        str,
        typer.Option(
            metavar="FORMATS", help=f"File formats of the figures, of {', '.join(_FORMATS)}."
        ),
    ] = "png,svg",
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with tables, figures and transcripts.",
        ),
    ] = None,
    notebook: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a Jupyter notebook that computes the report again."
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Prints utility, gain, drop, effort and process measures of each group; draws the figures.

    Process measures (initiatives, confirmations, approvals, interruptions, load, loops) come from the
    messages in a log; files of trajectories need not have them.
    """
    from ...engine.log.exchange.output_file import output_file
    from ...scoring.comparison.pairs import OUTCOME
    from ...scoring.report import document_page
    from ...scoring.trajectory.options import Options
    from ..reporting import (
        Asked,
        analysis_of,
        page_of,
        print_document,
        sessions_of,
        table_of,
    )

    analyses: dict[Analysis, bool] = {
        "forks": forks,
        "compare": compare is not None,
        "sensitivity": sensitivity,
        "agreement": agreement,
        "oversight": oversight,
        "explain": explain is not None,
    }
    forms: dict[Form, bool] = {"json": as_json, "csv": as_csv, "markdown": as_markdown}
    analysis, form = only_one(analyses), only_one(forms) or "text"
    if notebook is not None and (analysis or only_task):
        raise InvalidInput(
            "--notebook writes the report itself: leave other analyses and --only-task out"
        )
    if analysis not in (None, "explain") and convention == "paper":
        raise InvalidInput(f"--{analysis} and --convention paper cannot be combined")
    for option, given in (("--outcome", outcome), ("--pair-by", pair_by)):
        if given is not None and compare is None:
            raise InvalidInput(f"{option} needs --compare AGENTS")
    if convention == "paper":
        _check_paper(rounds, effort)
    taus = numbers(tau, "--tau")
    labels = None if group_by is None else choices(group_by, "--group-by")
    kinds = one_of(figure_formats, "--figure-formats", _FORMATS)
    counted = rounds or ("human-turn" if convention == "paper" else "handoff")
    rules = output_rules(*sources, force=force)
    _check_written((html, notebook), rules)
    _check_figures(figures, kinds, rules)
    asked = Asked(
        sources=sources,
        options=Options(rounds=counted, taus=taus, utility=utility, judge=judge),
        convention=convention,
        task=only_task,
        group_by=labels,
        bootstrap=bootstrap,
        seed=seed,
        workers=workers,
        agents=choices(compare, "--compare") if compare is not None else (),
        outcomes=choices(outcome, "--outcome") if outcome is not None else (OUTCOME,),
        pair_by=pair_by or "problem",
        session=explain or "",
        whole=figures is not None or html is not None,
        axis=effort,
    )
    sessions = None if analysis else sessions_of(asked)
    document = (
        analysis_of(asked, analysis or "explain")
        if sessions is None
        else table_of(asked, sessions, drawn=figures is not None)
    )
    if figures is not None:
        from ...scoring.report.plots import write_figures

        _say_written(write_figures(document.figures, figures, kinds, rules), figures)
    if html is not None:
        page = document_page(document) if sessions is None else page_of(sessions, asked)
        with output_file(html, rules) as target:
            target.write(page.encode())
        say(f"wrote {html}")
    if notebook is not None:
        _write_notebook(notebook, asked, rules)
    print_document(document, form)


def _check_written(paths: Sequence[Path | None], rules: OutputRules) -> None:
    """Checks the files that are to be written, before anything is computed."""
    from ...engine.log.exchange.output_file import check_output

    for path in paths:
        if path is not None:
            check_output(path, rules)


def _check_figures(figures: Path | None, kinds: Sequence[str], rules: OutputRules) -> None:
    """Checks this before the report keeps rows in a log that a figure would replace."""
    from ...engine.log.exchange.output_file import check_output

    if figures is None:
        return
    if figures.is_file():
        raise InvalidInput(f"--figures {figures} is a file; name a directory")
    for path in figures.glob("*"):
        if path.suffix[1:] in (*kinds, "txt"):
            check_output(path, rules._replace(replace=True))


def _write_notebook(path: Path, asked: Asked, rules: OutputRules) -> None:
    from ...engine.log.exchange.output_file import output_file
    from ...experiments.notebook import notebook_of

    text = notebook_of(
        asked.sources,
        options=asked.options,
        convention=asked.convention,
        group_by=asked.group_by,
        bootstrap=asked.bootstrap,
        seed=asked.seed,
        effort=asked.axis,
    )
    with output_file(path, rules) as target:
        target.write(text.encode())
    say(f"wrote {path}")


def _check_paper(rounds: str | None, effort: str) -> None:
    """Raises InvalidInput if an option does not go with the convention ``paper``."""
    if rounds == "handoff":
        raise InvalidInput("--convention paper counts rounds by human-turn; leave --rounds out")
    if effort != "rounds":
        raise InvalidInput("--convention paper has curves by round only; leave --effort out")


def print_report(log: str) -> None:
    """Prints the table of a log as ``duolog report LOG`` does.

    Raises:
        LogError: the log cannot be read.
    """
    from ...scoring.report import report_document
    from ..reporting import Asked, print_document, report_of

    asked = Asked(sources=[log], whole=False)
    print_document(report_document(report_of(asked), whole=False))


def report_json(log: str) -> str:
    """The report on a log in JSON, as ``duolog report LOG --json`` prints it.

    Raises:
        LogError: the log cannot be read.
    """
    from ...scoring.report import document_json, report_document
    from ..reporting import Asked, report_of

    return document_json(report_document(report_of(Asked(sources=[log])), whole=False))


def _say_written(written: Sequence[Path], directory: Path) -> None:
    if written:
        say(f"wrote {', '.join(path.name for path in written)} in {directory}")
    else:
        say("there is nothing to draw")
