"""``duolog forget``, ``verify`` and ``vacuum``: people's data erased, a log looked after."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example, seconds_in
from ..lookup import existing_log, find_session
from ..output import print_json, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import VacuumResult, Verification
    from ...scoring.index.query import SessionQuery
    from ..erasing import ErasedEverywhere

__all__ = ("close_command", "forget_command", "vacuum_command", "verify_command")

_WRONG = 1
_NAMED = 20  # erased sessions that are listed one by one
_SAMPLE = 50  # sessions whose kept rows are compared with their records
_CHANGED = "the rows kept of it differ from its records: drop them, with EventLog.drop_derived"

_Log = options.LogToRead
_Json = Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")]


@app.command(
    "forget",
    short_help="Erases what sessions were about, for good.",
    epilog=example(
        "duolog forget demo.db travel-3-two-stage-proactive-cdd5e0a21f",
        "duolog forget telemetry.db --where user=u1",
        "duolog forget telemetry.db --older-than 90d --where state=ended --copy backup.db --yes",
        note="Give the full id. The log keeps who acted and when, and erases the content. "
        "--where takes the filters of duolog sessions.",
    ),
)
def forget_command(
    log: _Log,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Id of the session, in full.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILTER", help="Only sessions that meet this filter; may be repeated."
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Sessions whose last record is older: 30m, 12h, 90d or 2w."
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            exists=True,
            help="Directory that caches model replies, to erase from, too.",
        ),
    ] = None,
    copy: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Copy of the log to erase the same sessions from, too."),
    ] = None,
    tables: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            exists=True,
            help="Exported tables to erase from; also brings them up to date.",
        ),
    ] = None,
    spill: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            exists=True,
            help="Another directory with the log's spill files, in addition to the usual one.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: _Json = False,
) -> None:
    """Erases the contents of sessions and of their forks for good, from the file's bytes too.

    Many sessions are erased in batches, with one compaction at the end. Replies of models in a response
    cache (run --cache) are erased if you name its directory.
    """
    from ...scoring.index.query import parse_query

    by_filter = where is not None or older_than is not None
    if session is not None and by_filter:
        raise InvalidInput("SESSION cannot be combined with --where or --older-than")
    if session is None and not by_filter:
        raise InvalidInput("name a session, or sessions by --where or --older-than")
    before = None if older_than is None else time.time() - seconds_in(older_than, "--older-than")
    query = parse_query(where or ())

    found = run(lambda: _look(log, session, query, before))
    if not found.sessions:
        if as_json:
            from ..erasing import ErasedEverywhere

            print_json(ErasedEverywhere())
        else:
            say(f"{log} holds no session to erase that meets this")
        return
    from ...engine.text import quantity
    from ..erasing import erase_everywhere

    what = session or quantity(len(found.sessions), "session")
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(
                f"{what} in {log} would be erased for good; without a terminal to confirm at, add --yes"
            )
        typer.confirm(f"Erase {what} in {log} for good?", abort=True, err=True)
    done = run(
        lambda: erase_everywhere(log, found.sessions, cache, copy or (), tables or (), spill or ())
    )
    if as_json:
        print_json(done)
    else:
        _print_erased(done, log, caches=found.asked_models and cache is None)
    if any(place.failed for place in (*done.copies, *done.tables)):
        raise typer.Exit(_WRONG)


class _Wanted(NamedTuple):
    """The sessions to erase, and whether any of them asked models."""

    sessions: list[str]
    asked_models: bool


async def _look(
    log: str, session: str | None, query: SessionQuery, before: float | None
) -> _Wanted:
    from ...scoring.index.erasure import sessions_to_erase

    async with existing_log(log) as opened:
        if session is None:
            names = await sessions_to_erase(opened, query, before=before)
        else:
            await find_session(opened, session, exact=True)
            names = [session]
        for name in names:
            calls = (r.kind == "ModelCalled" async for r in opened.read_all(session=name))
            if await anext((True async for is_call in calls if is_call), False):
                return _Wanted(names, True)
        return _Wanted(names, False)


def _print_erased(done: ErasedEverywhere, log: str, *, caches: bool) -> None:
    from ...engine.text import quantity
    from ...scoring.display.texts import clean

    many = len(done.sessions) > _NAMED
    names = quantity(len(done.sessions), "session") if many else ", ".join(done.sessions)
    forks = f", {quantity(done.forks, 'fork')} among them" if done.forks else ""
    typer.echo(clean(f"erased: {names}{forks}; rows kept of them, too"))
    for place in (*done.copies, *done.tables):
        if place.failed:
            say(clean(f"not erased in {place.where}: {place.failed}"))
            continue
        lingers = "" if place.compacted else f"; not yet compacted: run duolog vacuum {place.where}"
        typer.echo(
            clean(f"erased in {place.where}: {quantity(place.sessions, 'session')}{lingers}")
        )
    if not done.compacted:
        say(
            f"not yet compacted ({done.held_up}): traces may linger in its files until "
            f"duolog vacuum {log}"
        )
    if done.caches:
        say(clean(f"erased there too: {', '.join(done.caches)}"))
    if caches:
        say("replies that a response cache keeps are not erased: name its directory with --cache")
    say(f"not reached: {'; '.join(done.not_reached)}")


@app.command(
    "close",
    short_help="Closes sessions in which nothing happens any more.",
    epilog=example(
        "duolog close telemetry.db --idle 7d",
        "duolog close telemetry.db --idle 12h --dry-run",
        note="Simulations are left alone. Programs close idle sessions with duolog.open(idle_after=).",
    ),
)
def close_command(
    log: _Log,
    idle: Annotated[
        str,
        typer.Option(
            "--idle", metavar="DURATION", help="Time without an event: 30m, 12h, 90d or 2w."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the sessions; close nothing.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Closes open sessions of products that have been idle for some time, with the reason ``ended``."""
    seconds = seconds_in(idle, "--idle")

    async def main() -> list[str]:
        from ...telemetry.idle import close_idle

        async with existing_log(log) as opened:
            return await close_idle(opened, seconds, dry=dry_run)

    closed = run(main)
    if as_json:
        print_json({"closed": closed, "dry_run": dry_run})
        return
    from ...engine.text import quantity
    from ...scoring.display.texts import clean

    for session in closed:
        typer.echo(clean(session))
    done = "would be closed" if dry_run else "closed"
    say(f"{quantity(len(closed), 'session')} {done}")


@app.command(
    "verify",
    short_help="Looks for anything wrong in a log.",
    epilog=example("duolog verify demo.db", "duolog verify demo.db --json"),
)
def verify_command(log: _Log, as_json: _Json = False) -> None:
    """Looks at every record: order, versions, checksums, bodies, summaries, and the hash chain.

    It also folds a sample of sessions again, and compares them with the rows that the log keeps. The
    exit code is 1 if anything is wrong.
    """

    async def main() -> Verification:
        import msgspec

        from ...engine.log.contract import Problem
        from ...scoring.columns.log import changed_rows

        async with existing_log(log) as opened:
            found = await opened.verify()
            if found.problems:
                return found
            changed = [
                Problem(position=0, session=name, what=_CHANGED)
                for name in await changed_rows(opened, _SAMPLE)
            ]
            return msgspec.structs.replace(found, problems=tuple(changed))

    found = run(main)
    if as_json:
        print_json(found)
    else:
        _print_verification(found)
    if found.problems:
        raise typer.Exit(_WRONG)


def _print_verification(found: Verification) -> None:
    from ...engine.text import quantity
    from ...scoring.display.texts import clean

    for problem in found.problems:
        where = f"position {problem.position}" if problem.position else "the log"
        session = f", session {problem.session}" if problem.session else ""
        typer.echo(clean(f"{where}{session}: {problem.what}"))
    wrong = quantity(len(found.problems), "problem") if found.problems else "nothing is wrong"
    chain = ", hash chain included" if found.chained else ""
    looked = f"{quantity(found.events, 'record')} of {quantity(found.sessions, 'session')}{chain}"
    typer.echo(f"{looked}: {wrong}")
    if found.unchecked:
        say(
            f"{quantity(found.unchecked, 'record')} without a checksum, as older versions wrote them"
        )
    if found.lost:
        events = quantity(sum(found.lost.values()), "event")
        some = ", ".join(sorted(found.lost)[:3]) + (", ..." if len(found.lost) > 3 else "")
        sessions = quantity(len(found.lost), "session")
        say(clean(f"{sessions} incomplete: {events} could not be recorded ({some})"))
    if found.forgotten:
        say(f"{quantity(found.forgotten, 'session')} erased")
    if found.uncompacted:
        say(f"traces of {found.uncompacted} of them may linger in the file until duolog vacuum")


@app.command(
    "vacuum",
    short_help="Reclaims unused space in a log file.",
    epilog=example("duolog vacuum demo.db"),
)
def vacuum_command(log: _Log, as_json: _Json = False) -> None:
    """Gives unused room back, and finishes erasures that another process held up.

    The exit code is 1 if another process that reads the log blocks it again.
    """

    async def main() -> VacuumResult:
        async with existing_log(log) as opened:
            return await opened.vacuum()

    done = run(main)
    if as_json:
        print_json(done)
    else:
        typer.echo(f"{done.before:,} bytes before, {done.after:,} after")
    if not done.finished:
        say(f"not finished, since another process holds {log}: try again later")
        raise typer.Exit(_WRONG)
