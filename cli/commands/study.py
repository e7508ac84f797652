"""``duolog study``: a study with people, from its plan to the exported data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example
from ..listening import SPARE, address_of, bind, follow_sessions, given_token, open_files
from ..lookup import existing_log, log_at
from ..output import command_name, output_rules, print_json, say
from ..root import app
from ..runtime import collect_rarely, requests_to_end, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from ...engine.errors import DuologError
    from ...experiments.studies.people import Counts
    from ...experiments.studies.plan import Study
    from ...experiments.studies.recruiting import Places, Recruits
    from ...interop.http.limits import HttpLimits
    from ...interop.http.server import HttpServer

__all__ = ("study",)

_CONNECTIONS = 2048
_DAY = 86400.0
_LEASE = "study"

study = typer.Typer(
    help="Runs a study with people: consent, assignment, sessions, questionnaires, export.",
    no_args_is_help=True,
)
app.add_typer(study, name="study")

_Plan = Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the study's plan.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")]


@study.command(
    "new",
    epilog=example(
        "duolog study new trips",
        "duolog study new trips --directory studies",
        note="Edit the file, then run duolog study check.",
    ),
)
def new_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")
    ],
    directory: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, help="Where to write it.")
    ] = Path(),
    force: options.Force = False,
) -> None:
    """Writes an example plan of a study.

    NAME.toml holds an example of everything that a plan can say.
    """
    from importlib.resources import files

    from ...engine.log.exchange.output_file import output_file
    from ...experiments.studies.plan import check_name

    check_name(name)
    text = files(__package__).joinpath("../templates/study.toml.txt").read_text(encoding="utf-8")
    path = directory / f"{name}.toml"
    with output_file(path, output_rules(force=force)) as file:
        file.write(text.replace("NAME", name).replace(f"FILE.py:{name}", "FILE.py:NAME").encode())
    call = command_name()
    typer.echo(f"wrote {path}; next:")
    typer.echo(f"  {call} study check {path}")
    typer.echo(f"  {call} study serve {path}")


@study.command(
    "check",
    epilog=example("duolog study check trips.toml"),
)
def check_command(file: _Plan) -> None:
    """Checks a plan, and prints what participants meet.

    Tasks, agents and instances are looked up. If something is wrong, the message names the key, the value and
    the choices.
    """
    from ...engine.text import quantity
    from ...experiments.studies.assigning import orders
    from ...experiments.studies.plan import read_study, resolved

    plan = resolved(read_study(file))
    typer.echo(f"{plan.title} ({plan.name})")
    how = "meets all conditions" if plan.design == "within" else "meets one condition"
    typer.echo(f"Each participant {how}, {plan.assignment}:")
    for order in orders(plan):
        typer.echo(f"  {' > '.join(order)}")
    for one in plan.condition:
        limit = f"{one.minutes:g} minutes" if one.minutes else "no time limit"
        model = f"model {one.model}" if one.model else "on rules"
        instances = ", ".join(one.instances)
        typer.echo(
            f"{one.name}: {one.task} with {one.agent} {model}, {limit}; instances {instances}"
        )
    for asked in plan.questionnaire:
        typer.echo(
            f"{asked.name}: {asked.kind}, {quantity(len(asked.items), 'item')}, {asked.when}"
        )
    typer.echo("The plan is valid.")


@study.command(
    "status",
    epilog=example("duolog study status trips.toml", "duolog study status trips.toml --json"),
)
def status_command(file: _Plan, as_json: _Json = False) -> None:
    """Prints how many people agreed, finished and withdrew.

    Also how many were assigned to each order of conditions, and began each condition.
    """
    plan, places = _planned(file)
    counts = run(lambda: _counts(plan, places))
    if as_json:
        print_json(counts)
        return
    wanted = f" of {plan.participants}" if plan.participants else ""
    typer.echo(f"agreed     {counts.consented}{wanted}")
    typer.echo(f"finished   {counts.finished}")
    typer.echo(f"working    {counts.working}")
    typer.echo(f"declined   {counts.declined}")
    typer.echo(f"withdrew   {counts.withdrawn}")
    for order, number in counts.orders.items():
        typer.echo(f"assigned to {order}: {number}")
    for condition, number in counts.begun.items():
        typer.echo(f"began {condition}: {number}")


@study.command(
    "export",
    epilog=example(
        "duolog study export trips.toml --output trips-data",
        note="The recruiters' ids stay in NAME.ids.csv, and people who withdrew are left out.",
    ),
)
def export_command(
    file: _Plan,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, help="Where to write.", show_default="NAME-data"
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Writes the data as tables, with codebook and data card.

    participants.csv has a row per participant, conditions.csv one per participant and condition, answers.csv
    one per answer.
    """
    from ...engine.text import quantity
    from ...experiments.studies.exporting import export_study
    from ...experiments.studies.people import read_people

    plan, places = _planned(file)
    directory = output or Path(f"{file.with_suffix('').name}-data")

    async def export() -> str:
        async with (
            existing_log(str(places.people)) as people_log,
            existing_log(str(places.sessions)) as sessions,
        ):
            people = await read_people(plan, people_log, sessions)
            done = await export_study(people, sessions, directory, output_rules(force=force))
            return (
                f"{quantity(done.participants, 'participant')}, {quantity(done.answers, 'answer')}"
            )

    typer.echo(f"wrote {run(export)} to {directory}")


@study.command(
    "serve",
    epilog=example(
        "duolog study serve trips.toml",
        "duolog study serve trips.toml --host 0.0.0.0 --name study.example.org --token-file token.txt",
        note="Stop it with Ctrl+C and start it again at any time: participants continue. "
        "Needs the extra duolog[web].",
    ),
)
def serve_command(
    file: _Plan,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8740,
    name: options.HostNames = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the operator's token; or set DUOLOG_TOKEN.",
            show_default="made from the study's key",
        ),
    ] = None,
    trusted_proxy: options.TrustedProxy = None,
    api_base: options.ApiBase = None,
) -> None:
    """Serves a study to participants, and its sessions to you.

    Next to the plan it keeps NAME.db (sessions), NAME.people.db (consent, assignment, answers, withdrawal),
    NAME.ids.csv (ids of recruiters) and NAME.key (key of the pseudonyms).
    """
    from ...experiments.studies.recruiting import Recruits

    plan, places = _planned(file)
    recruits = Recruits.at(places, plan.recruitment.parameters)
    given = given_token(token_file)
    bound = bind(host, port, guarded=given is not None)
    try:
        from ...interop.http.limits import HttpLimits

        most = max(open_files(_CONNECTIONS + SPARE) - SPARE, 16)
        connections = min(most, _CONNECTIONS)
        limits = HttpLimits(
            connections=connections, per_client=connections, proxies=tuple(trusted_proxy or ())
        )
        names = [*(name or ()), host]
        run(lambda: _serve(plan, places, recruits, bound, given, names, limits, api_base))
    finally:
        bound.close()


def _planned(file: Path) -> tuple[Study, Places]:
    from ...experiments.studies.plan import read_study, resolved
    from ...experiments.studies.recruiting import places_of

    return resolved(read_study(file)), places_of(file)


async def _counts(plan: Study, places: Places) -> Counts:
    from ...experiments.studies.people import People, read_people

    if not places.people.exists():
        raise InvalidInput(f"participants have yet to arrive: {places.people} does not exist")
    async with (
        existing_log(str(places.people)) as people_log,
        existing_log(str(places.sessions)) as sessions,
    ):
        people: People = await read_people(plan, people_log, sessions)
        return people.counts()


async def _serve(
    plan: Study,
    places: Places,
    recruits: Recruits,
    bound: socket,
    token: str | None,
    names: Sequence[str],
    limits: HttpLimits,
    api_base: str | None,
) -> None:
    import anyio

    from ...engine.log.leases import LeaseHolder, LeaseTerms, Leasing
    from ...experiments.studies.people import read_people
    from ...experiments.studies.running import Sittings
    from ...experiments.studies.site import OPEN, guests, study_part
    from ...experiments.workbench import SessionHost
    from ...interop.http.server import HttpServer
    from ...interop.workbench.access.guard import HostNames
    from ...interop.workbench.access.identity import Access
    from ...interop.workbench.app import PARTS, make_workbench, make_workbench_app
    from ...interop.workbench.participation.routes import participation

    access = Access(token or recruits.secret("operator"), life=90 * _DAY)
    stopping = anyio.Event()
    failures: list[DuologError] = []
    async with (
        log_at(str(places.people), create=True) as people_log,
        log_at(str(places.sessions), create=True) as log,
        anyio.create_task_group() as tasks,
    ):
        if isinstance(people_log, Leasing):
            leases = LeaseHolder(people_log.leases(), LeaseTerms())
            if not await leases.claim(_LEASE, stopping.set):
                raise InvalidInput(
                    f"{places.people} is served by another process: stop that one first, or wait half a "
                    "minute if it was killed"
                )
            tasks.start_soon(leases.keep)
        people = await read_people(plan, people_log, log)
        await people.complete()
        host = SessionHost(log, tasks, api_base=api_base)
        workbench = make_workbench(
            log, access, name=places.sessions.name, http=limits, stopping=stopping
        )
        parts = (
            *PARTS,
            participation(host),
            study_part(people, recruits, Sittings(people, host, log)),
        )
        hosts = HostNames(names, any_address=names[-1] in ("0.0.0.0", "::"))
        app_ = make_workbench_app(
            workbench, hosts, parts, open_at=OPEN, guest_of=guests(people, recruits)
        )
        server = HttpServer(app_, stopping, limits)
        collect_rarely()
        tasks.start_soon(follow_sessions, workbench.sessions, server, failures)
        tasks.start_soon(
            _announce, server, plan, address_of(bound), recruits.secret("operator"), token
        )
        await server.run([bound])
        await host.leave_all()
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]


async def _announce(
    server: HttpServer, plan: Study, address: str, secret: str, given: str | None
) -> None:
    await server.started()
    parameters = plan.recruitment.parameters
    query = "&".join(f"{name}={{{{%{name}%}}}}" for name in parameters)
    say(f"the study {plan.name} is at {address}/study{'?' if query else ''}{query}")
    if query:
        say(
            f"to try it yourself: {address}/study?{'&'.join(f'{name}=try-1' for name in parameters)}"
        )
    shown = "TOKEN" if given else secret
    say(f"its sessions, for you alone: {address}/#token={shown} (end it with Ctrl+C)")
    with requests_to_end() as requests:
        async for _ in requests:
            server.stop()
