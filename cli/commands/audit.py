"""``duolog audit``: how far simulated people are from real ones."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..arguments import example
from ..lookup import existing_log
from ..root import app
from ..runtime import run

__all__ = ("audit_command",)


@app.command(
    "audit",
    short_help="Compares simulated people with real ones.",
    epilog=example(
        "duolog run travel --users proactive,bounded --log demo.db",
        "duolog audit demo.db --against people.db",
        "duolog audit demo.db --against people.db --json",
        note="People are the humans of HUMAN_LOG without a persona, rules or model; an import of "
        "chats is such a log: duolog import --help.",
    ),
)
def audit_command(
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="Path or URL of the log with simulated people.")
    ],
    against: options.Against,
    bootstrap: options.Resamples = 1000,
    seed: options.ResamplingSeed = 0,
    as_json: options.NumbersAsJson = False,
) -> None:
    """Compares simulated users with real humans, per persona, and measures the distance between them.

    Compared are words of a turn, shares of turns that ask something and that are vague, edits of the
    output, ratings, and survival by round. The distances are Wasserstein's and that of Kolmogorov and
    Smirnov, with bootstrap intervals over sessions, and the values that chance alone gives. Reads only.
    """
    from ...engine.errors import InvalidInput
    from ...scoring.comparison.behaviour import Behaviour, read_behaviours
    from ...scoring.comparison.simulators import audit
    from ...scoring.report import audit_document
    from ..reporting import print_document

    async def read(where: str) -> list[Behaviour]:
        async with existing_log(where) as opened:
            return await read_behaviours(opened)

    simulated, people = run(lambda: read(log)), run(lambda: read(against))
    try:
        found = audit(simulated, people, resamples=bootstrap, seed=seed)
    except InvalidInput as error:
        raise InvalidInput(f"{log} against {against}: {error}") from None
    print_document(audit_document(found), "json" if as_json else "text")
