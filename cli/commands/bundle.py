"""``duolog bundle`` and ``duolog verify-bundle``: a log as one archive that anybody can verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options
from ..arguments import example
from ..output import output_rules
from ..root import app
from ..runtime import run

__all__ = ("bundle_command", "verify_bundle_command")


@app.command(
    "bundle",
    short_help="Writes a log as one archive: tables, report, manifests, data card, checksums.",
    epilog=example(
        "duolog bundle demo.db --output paper.zip --licence CC-BY-4.0",
        "duolog bundle demo.db --output tables.zip --licence CC0-1.0 --no-records",
        "duolog verify-bundle paper.zip",
        note="The archive holds all records, texts included; --no-records leaves them out.",
    ),
)
def bundle_command(
    log: options.LogToRead,
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the archive.")],
    licence: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Licence of the data, such as CC-BY-4.0, for the data card."
        ),
    ],
    about: Annotated[
        str, typer.Option(metavar="TEXT", help="A sentence on the data, for the data card.")
    ] = "",
    no_records: Annotated[
        bool, typer.Option("--no-records", help="Leave the records out, and with them all texts.")
    ] = False,
    bootstrap: options.Resamples = 1000,
    force: options.Force = False,
) -> None:
    """Writes a log as one archive: Parquet tables, the report, manifests, a data card with licences, and checksums."""
    from ...engine.errors import InvalidInput
    from ...engine.log.exchange.output_file import check_output

    if not licence.strip():
        raise InvalidInput("--licence is empty: say under which licence the data may be used")
    rules = output_rules(log, force=force)
    check_output(output, rules)
    from ...experiments.bundle import Card, write_bundle

    card = Card(licence=licence.strip(), about=about.strip())
    count = run(
        lambda: write_bundle(
            log, output, card, records=not no_records, bootstrap=bootstrap, rules=rules
        )
    )
    typer.echo(f"{count} files written to {output}. Next: duolog verify-bundle {output}")


@app.command(
    "verify-bundle",
    short_help="Verifies a bundle: checksums, and every number of its report, computed again.",
    epilog=example("duolog verify-bundle paper.zip"),
)
def verify_bundle_command(
    bundle: Annotated[Path, typer.Argument(metavar="FILE", help="The archive.")],
) -> None:
    """Verifies a bundle: its checksums, and every number of its report, computed again from tables and records."""
    from ...experiments.bundle import verify_bundle

    found = run(lambda: verify_bundle(bundle))
    for name, wrong in found.checks.items():
        typer.echo(f"{name}: {wrong or 'as in the bundle'}")
    if not found.holds:
        raise typer.Exit(1)
