"""``duolog copy``: a log moved into another store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..arguments import example
from ..lookup import existing_log, log_at
from ..output import print_json, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.exchange.copying import LogCopied

__all__ = ("copy_command",)


@app.command(
    "copy",
    short_help="Copies a log into another store.",
    epilog=example(
        "duolog copy telemetry.db postgresql://ann@db.example/work",
        "duolog copy telemetry.db backup.db --follow",
        note="Run again, it continues at the end of the copy. To move a program: copy with --follow until it has "
        "caught up, stop the program, copy once more, and start it with the new log.",
    ),
)
def copy_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Path or URL of the log.")],
    target: Annotated[
        str,
        typer.Argument(metavar="TO", help="Path or URL of the copy; created if it does not exist."),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep copying new records until interrupted.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary of the copy as JSON.")
    ] = False,
) -> None:
    """Copies all records with their positions, ids, versions and bytes, and repeats erasures.

    Other processes may write the log during the copy; only this command may write the copy.
    """
    from ...experiments.plan import check_log

    check_log(target)

    async def main() -> LogCopied:
        from ...engine.log.exchange.copying import copy_log

        async with existing_log(source) as held, log_at(target, create=True) as copy:
            if held.url == copy.url:
                raise InvalidInput(f"{target} is the log itself: name another one for the copy")
            if follow:
                say(f"{target} follows {source} (end it with Ctrl+C)")
            return await copy_log(held, copy, follow=follow)

    copied = run(main)
    if as_json:
        print_json(copied)
        return
    from ...engine.text import quantity
    from ...scoring.display.texts import clean

    typer.echo(f"{quantity(copied.records, 'record')} copied, up to position {copied.position:,}")
    if copied.forgotten:
        typer.echo(clean(f"forgotten there, too: {', '.join(copied.forgotten)}"))
