"""``duolog report``: the paper's table of a log, or of a file of trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..arguments import MOST_RESAMPLES, choices, example, numbers, one_of
from ..output import output_rules, print_json, print_text, say, say_left_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...engine.log.exchange.output_file import OutputRules
    from ...scoring.metrics import Report
    from ...scoring.trajectory.options import Options
    from ...scoring.trajectory.points import Trajectory

__all__ = ("print_report", "report_command", "report_data")


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
        "duolog report trajectories.jsonl --convention paper --json",
        "duolog report demo.db --explain travel-3-two-stage",
        "duolog report demo.db --compare one-stage,two-stage",
        "duolog report tables --json",
        note="A directory of tables is what duolog export --format parquet writes; it gives the table, for "
        "millions of sessions, and no other analysis.",
    ),
)
def report_command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG|FILE|DIR...",
            help="Logs (path or URL), JSON Lines files of trajectories, or a directory of tables.",
        ),
    ],
    convention: Annotated[
        Literal["formal", "paper"],
        typer.Option(
            help="The formulas of the paper to the letter, or as its published analysis computes."
        ),
    ] = "formal",
    rounds: Annotated[
        Literal["handoff", "human-turn"] | None,
        typer.Option(
            help="How rounds are counted: handoff, or human-turn, which the convention paper implies."
        ),
    ] = None,
    tau: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Tolerances to give the drop for.")
    ] = "1,2,3",
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS", help="Labels to group by; agent,model,user,task if not given."
        ),
    ] = None,
    utility: Annotated[
        str | None,
        typer.Option(metavar="SCORER", help="Whose utility counts: NAME or NAME@VERSION."),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            metavar="SCORER", help="Whose ratings count: NAME, NAME@VERSION, human, none or auto."
        ),
    ] = "auto",
    bootstrap: Annotated[
        int,
        typer.Option(min=0, max=MOST_RESAMPLES, help="Resamples for the intervals; 0 for none."),
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that read a large log together; one for each processor if not given.",
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
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="AGENTS", help="Compare agents in pairs, instance by instance, instead."
        ),
    ] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, for programs.")] = False,
    json_schema: Annotated[
        bool,
        typer.Option(
            "--json-schema",
            callback=_print_schema,
            is_eager=True,
            help="Print the JSON Schema of --json, and exit.",
        ),
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A row per group.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="The table in Markdown.")] = False,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the figures into a directory.")
    ] = None,
    formats: Annotated[
        str, typer.Option(metavar="FORMATS", help=f"Of the figures: {', '.join(_FORMATS)}.")
    ] = "png,svg",
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write tables, curves, scatter and transcripts as one page."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace figures and a page of those names.")
    ] = False,
) -> None:
    """Prints utility, gain, drop, effort and process measures of each group; draws the figures.

    Process measures (initiatives, confirmations, approvals, interruptions, load, loops) come from the
    messages in a log; files of trajectories need not have them.
    """
    analysis = _analysis(
        {
            "--forks": forks,
            "--compare": compare is not None,
            "--sensitivity": sensitivity,
            "--agreement": agreement,
        }
    )
    if as_json + as_csv + as_markdown > 1:
        raise InvalidInput("choose one of --json, --csv and --markdown")
    if explain is not None and (as_csv or as_markdown):
        raise InvalidInput("--explain prints text, or JSON with --json")
    if analysis is not None:
        _check_analysis(
            analysis,
            bool(as_csv or as_markdown or explain or html)
            or (figures is not None and compare is None),
            convention,
        )
    if convention == "paper" and rounds == "handoff":
        raise InvalidInput("--convention paper counts rounds by human-turn; leave --rounds out")
    taus = numbers(tau, "--tau")
    labels = None if group_by is None else choices(group_by, "--group-by")
    kinds = one_of(formats, "--formats", _FORMATS)
    counted = rounds or ("human-turn" if convention == "paper" else "handoff")

    from ...scoring.report import aggregate
    from ...scoring.trajectory.options import Options
    from ..report_sources import directory_of, load

    options = Options(rounds=counted, taus=taus, utility=utility, judge=judge)
    directory = directory_of(sources)
    if directory is not None:
        others = {"--explain": explain is not None, "--figures": figures is not None}
        others |= {"--html": html is not None}
        other = analysis or next((name for name, given in others.items() if given), None)
        if other is not None:
            raise InvalidInput(f"{other} needs the log: {directory} gives the table alone")
        from ..table_report import report_directory

        report = report_directory(
            directory,
            options,
            convention=convention,
            group_by=labels,
            bootstrap=bootstrap,
            seed=seed,
            whole=as_json or as_csv or as_markdown,
        )
        _print(report, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown)
        return
    rules = _rules(sources, html, force=force)
    if analysis is not None:
        drawn = None if figures is None else (figures, kinds, rules)
        _analyse(
            sources, options, analysis, compare, bootstrap, seed, workers, drawn, as_json=as_json
        )
        return
    trajectories = load(sources, options, workers=workers)
    sessions = _whole(trajectories)
    report = aggregate(
        sessions,
        convention=convention,
        taus=taus,
        group_by=labels,
        bootstrap=0 if explain is not None else bootstrap,
        seed=seed,
    )
    report = _warned(report, sessions)
    if figures is not None:
        _draw(report, figures, kinds, rules)
    if html is not None:
        _write_page(report, html, sources, options, rules)
    if explain is not None:
        from ..report_analyses import print_explanation

        print_explanation(trajectories, report, explain, as_json=as_json)
    else:
        _print(report, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown)


def _print(report: Report, *, as_json: bool, as_csv: bool, as_markdown: bool) -> None:
    if as_json:
        from ...scoring.report import report_json

        print_text(report_json(report))
    elif as_csv:
        from ...scoring.report import report_csv

        print_text(report_csv(report))
    elif as_markdown:
        from ...scoring.report import report_markdown

        print_text(report_markdown(report))
    else:
        _print_table(report)


def _rules(sources: Sequence[str], html: Path | None, *, force: bool) -> OutputRules:
    """What files may be replaced; a page that may not is refused before there is any work."""
    from ...engine.log.exchange.output_file import check_output

    rules = output_rules(*sources, force=force)
    if html is not None:
        check_output(html, rules)
    return rules


def print_report(log: str) -> None:
    """Prints the table of a log as ``duolog report LOG`` does.

    Raises:
        LogError: the log cannot be read.
    """
    _print_table(_report_on(log))


def report_data(log: str) -> str:
    """The report on a log in JSON, as ``duolog report LOG --json`` prints it.

    Raises:
        LogError: the log cannot be read.
    """
    from ...scoring.report import report_json

    return report_json(_report_on(log))


def _report_on(log: str) -> Report:
    from ...scoring.report import aggregate
    from ...scoring.trajectory.options import Options
    from ..report_sources import load

    sessions = _whole(load([log], Options()))
    return _warned(aggregate(sessions), sessions)


def _warned(report: Report, sessions: Sequence[Trajectory]) -> Report:
    """The report with a warning where the order of agents depends on what counts as a bad rating."""
    if report.convention != "formal":
        return report
    import msgspec

    from ...scoring.comparison.sensitivity import order_warnings

    return msgspec.structs.replace(report, warnings=order_warnings(sessions, report.taus))


def _whole(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The sessions to report on, without forks, which would count their beginning twice."""
    from ...scoring.metrics.forks import without_forks

    found = without_forks(trajectories)
    say_left_out(len(trajectories) - len(found))
    return found


def _analysis(asked: Mapping[str, bool]) -> str | None:
    """The analysis that is asked for instead of the table, if any.

    Raises:
        InvalidInput: several are.
    """
    chosen = [name for name, given in asked.items() if given]
    if len(chosen) > 1:
        raise InvalidInput(f"choose one of {', '.join(chosen)}")
    return chosen[0] if chosen else None


def _check_analysis(analysis: str, other_output: bool, convention: str) -> None:
    """Refuses options that an analysis cannot follow.

    Raises:
        InvalidInput: there is one.
    """
    if other_output:
        raise InvalidInput(f"{analysis} prints a table of its own, or JSON with --json")
    if convention == "paper":
        raise InvalidInput(f"{analysis} goes by the formal convention")


def _analyse(
    sources: Sequence[str],
    options: Options,
    analysis: str,
    agents: str | None,
    bootstrap: int,
    seed: int,
    workers: int | None,
    drawn: tuple[Path, Sequence[str], OutputRules] | None,
    *,
    as_json: bool,
) -> None:
    """Prints an analysis other than the table; draws that of agents in pairs."""
    from ..report_analyses import agreement_of, sensitivity_of
    from ..report_sources import load
    from ..text.statistics import print_agreement, print_comparisons, print_sensitivity
    from ..text.terminal import screen

    if analysis == "--forks":
        _compare(load(sources, options, workers=workers), bootstrap, seed, as_json=as_json)
    elif analysis == "--compare":
        from ...scoring.comparison.pairs import compare

        names = choices(agents or "", "--compare")
        sessions = _whole(load(sources, options, workers=workers))
        pairs = compare(sessions, names, taus=options.taus, bootstrap=bootstrap, seed=seed)
        if drawn is not None:
            from ...scoring.report.figures.forest import save_forest

            directory, formats, rules = drawn
            _say_written(save_forest(pairs, directory, formats, rules=rules), directory)
        print_json(pairs) if as_json else print_comparisons(screen(), pairs)
    elif analysis == "--agreement":
        agreed = agreement_of(sources, options, bootstrap=bootstrap, seed=seed, workers=workers)
        print_json(agreed) if as_json else print_agreement(screen(), agreed)
    else:
        found = sensitivity_of(
            sources, options, taus=options.taus, bootstrap=bootstrap, seed=seed, workers=workers
        )
        print_json(found) if as_json else print_sensitivity(screen(), found)


def _compare(
    trajectories: Sequence[Trajectory], bootstrap: int, seed: int, *, as_json: bool
) -> None:
    from ...scoring.metrics.forks import compare_forks

    found = compare_forks(trajectories, bootstrap=bootstrap, seed=seed)
    if as_json:
        print_json(found)
        return
    from ..text.forks import print_forks
    from ..text.terminal import screen

    print_forks(screen(), found)


def _print_table(report: Report) -> None:
    from ...scoring.report import ReportTable
    from ..text.terminal import screen

    screen().print(ReportTable(report))


def _draw(report: Report, directory: Path, formats: Sequence[str], rules: OutputRules) -> None:
    from ...scoring.report.figures import save_figures

    _say_written(save_figures(report, directory, formats, rules=rules), directory)


def _say_written(written: Sequence[Path], directory: Path) -> None:
    if written:
        say(f"wrote {', '.join(path.name for path in written)} in {directory}")
    else:
        say("there is nothing to draw")


def _write_page(
    report: Report, file: Path, sources: Sequence[str], options: Options, rules: OutputRules
) -> None:
    from ...engine.log.exchange.output_file import output_file
    from ..report_page import report_page

    page = report_page(report, sources, options).encode()
    with output_file(file, rules) as target:
        target.write(page)
    say(f"wrote {file}")
