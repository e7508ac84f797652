"""``duolog forget``, ``verify`` and ``vacuum``: people's data erased, a log looked after."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..arguments import example
from ..lookup import existing_log, find_session
from ..output import print_json, say
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import Cache, ForgetResult, VacuumResult, Verification

__all__ = ("forget_command", "vacuum_command", "verify_command")

_WRONG = 1
_SAMPLE = 50  # sessions whose kept rows are compared with their records
_CHANGED = "the rows kept of it differ from its records: drop them, with EventLog.drop_derived"

_Log = Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")]
_Json = Annotated[bool, typer.Option("--json", help="What was done as JSON, for programs.")]


@app.command(
    "forget",
    short_help="Erases what a session was about, for good.",
    epilog=example(
        "duolog forget demo.db travel-3-two-stage-proactive-cdd5e0a21f",
        note="The id is given in full here. Who did something when stays; what it was is gone.",
    ),
)
def forget_command(
    log: _Log,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session, in full.")],
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, exists=True, help="Response cache to erase from, too."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: _Json = False,
) -> None:
    """Erases the contents of a session and of its forks for good, from the file's bytes too.

    Replies of its models that a response cache keeps (run --cache) are erased if its directory is named.
    """

    async def look() -> bool:
        async with existing_log(log) as opened:
            await find_session(opened, session, exact=True)
            calls = (r.kind == "ModelCalled" async for r in opened.read_all(session=session))
            return await anext((True async for is_call in calls if is_call), False)

    async def main() -> ForgetResult:
        from ...engine.models.traffic.cache import CachedReplies
        from ...telemetry.spill import Spill, SpillFiles

        async with existing_log(log) as opened:
            caches: list[Cache] = []
            spilled = SpillFiles(Spill(), opened.url, None)
            if spilled.exist():
                caches.append(spilled)
            if cache is not None:
                caches.append(await CachedReplies.read(opened, cache))
            return await opened.forget(session, caches=caches)

    asked_models = run(look)
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(
                f"{session} in {log} would be erased for good, and nobody can be asked here: give --yes"
            )
        typer.confirm(f"Erase {session} in {log} for good?", abort=True, err=True)
    erased = run(main)
    if as_json:
        print_json(erased)
        return
    from ...scoring.display.texts import clean

    typer.echo(clean(f"erased: {', '.join(erased.sessions)}"))
    if not erased.compacted:
        say(
            f"not yet compacted ({erased.held_up}): traces may linger in its files until "
            f"duolog vacuum {log}"
        )
    if erased.caches:
        say(clean(f"erased there too: {', '.join(erased.caches)}"))
    if asked_models and cache is None:
        say("replies that a response cache keeps are not erased: name its directory with --cache")


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
    short_help="Gives a log's unused room back.",
    epilog=example("duolog vacuum demo.db"),
)
def vacuum_command(log: _Log, as_json: _Json = False) -> None:
    """Gives unused room back, and finishes erasures that another process held up.

    The exit code is 1 where another process reads the log and holds it up again.
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
