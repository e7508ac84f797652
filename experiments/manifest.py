"""The manifest of an experiment: its design and surroundings, written before the first session.

Sessions carry the digest of the design. So a report says that it pools sessions of several designs, and a run refuses
to do so unless it is told. Simulated users have stamps without a manifest: see ``scoring.trajectory.labels.simulator_of``.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from .._version import __version__
from ..engine import codec
from ..engine.budget import MESSAGE
from ..engine.errors import InvalidInput
from ..engine.events import JSON, SessionOpened
from ..engine.log.contract import EventLog
from ..engine.log.exchange.output_file import OutputRules, output_file
from ..engine.session.resume import ENGINE_NUMBER
from ..engine.text import quantity
from ..scoring.columns.rows import DEFINITIONS, FOLD_VERSION
from ..scoring.trajectory.labels import simulator_of

if TYPE_CHECKING:
    from .spec import Experiment

__all__ = (
    "Manifest",
    "check_designs",
    "design_of",
    "make_manifest",
    "manifest_digest",
    "manifest_path",
    "read_manifests",
    "stamped",
    "write_manifest",
)

_RUN_ONLY: Final = frozenset(
    {
        "agents",
        "users",
        "models",
        "log",
        "concurrency",
        "budget",
        "cache",
        "api_base",
        "sessions",
        "instances",
        "seed",
        "repeats",
    }
)
"""Settings that are not part of the design: each session names its problem, agent, user and model, and
the others change no session."""

_SHOWN: Final = 12  # digits of a digest that people are shown


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The design of an experiment, and the surroundings that it was run in.

    Attributes:
        digest: the digest of all the rest but the time of writing.
        written: when it was written, in UTC: before the first session of this run.
        file: the file that describes the experiment; empty if none does.
        file_sha256: the SHA-256 of that file as it was then, the preregistration; empty
            likewise.
        package: version of Duolog.
        commit: the commit of the checkout that it runs from; None if it is not one.
        python: version of Python.
        dependencies: versions of the packages that Duolog needs.
        engine: number of the engine.
        definitions: version of the definitions of all numbers.
        fold: version of the fold from records to rows.
        tasks: by task, a digest of the problems that it poses here, at most the first 30 under each seed.
        prompts: by agent or user, the digest of the prompts that it is on a model with.
        suite: name and digest of the suite, if it is a profile.
        experiments: all settings, a table for each task.
        design: digest of their design, which their sessions carry.
        simulators: by task and user, the stamp of the simulated user.
    """

    digest: str
    written: str
    file: str = ""
    file_sha256: str = ""
    package: str = __version__
    commit: str | None = None
    python: str = ""
    dependencies: Mapping[str, str] = {}
    engine: int = ENGINE_NUMBER
    definitions: int = DEFINITIONS
    fold: int = FOLD_VERSION
    tasks: Mapping[str, str] = {}
    prompts: Mapping[str, str] = {}
    suite: Mapping[str, str] = {}
    experiments: tuple[Mapping[str, JSON], ...] = ()
    design: str = ""
    simulators: Mapping[str, str] = {}


_decode: Final = msgspec.json.Decoder(tuple[Manifest, ...]).decode


def design_of(experiments: Sequence[Experiment]) -> str:
    """The digest of the design of experiments that are run together.

    It does not cover which cells and problems are played, and how often: each session says that itself.
    So part of a grid can be run first.
    """
    designs = [
        {name: value for name, value in _settings(one).items() if name not in _RUN_ONLY}
        for one in experiments
    ]
    return codec.digest(designs)


def make_manifest(
    experiments: Sequence[Experiment],
    openings: Iterable[SessionOpened] = (),
    *,
    design: str | None = None,
    file: str | None = None,
    suite: Mapping[str, str] = {},
) -> Manifest:
    """The manifest of experiments that are about to run.

    Args:
        experiments: as they are run, with all defaults filled in.
        openings: of some of their sessions, which tell problems, prompts and users.
        design: digest of the design; None for that of the experiments.
        file: the file that describes them.
        suite: name and digest of the suite, if they are a profile.

    Raises:
        InvalidInput: the file cannot be read.
    """
    digest = ""
    if file is not None:
        try:
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError as error:
            raise InvalidInput(f"cannot read {file}: {error.strerror or error}") from error
    settings = tuple(map(_settings, experiments))
    chosen = design_of(experiments) if design is None else design
    problems: dict[str, set[str]] = {}
    prompts: dict[str, str] = {}
    simulators: dict[str, str] = {}
    for planned in openings:
        opened = msgspec.structs.replace(planned, engine=ENGINE_NUMBER)  # as it will be played
        problems.setdefault(opened.task, set()).add(opened.problem or opened.instance)
        for one in opened.participants:
            if one.prompt is not None:
                prompts[f"{opened.task}/{one.persona or one.policy} on {one.model}"] = one.prompt
            if one.role == "human" and (stamp := simulator_of(opened)):
                simulators[f"{opened.task}/{one.persona or one.policy or one.name}"] = stamp
    made = Manifest(
        digest="",
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        file="" if file is None else Path(file).name,
        file_sha256=digest,
        commit=_commit(),
        python=platform.python_version(),
        dependencies=_dependencies(),
        tasks={task: codec.digest(sorted(found)) for task, found in sorted(problems.items())},
        prompts=dict(sorted(prompts.items())),
        suite=dict(suite),
        experiments=settings,
        design=chosen,
        simulators=dict(sorted(simulators.items())),
    )
    return msgspec.structs.replace(made, digest=manifest_digest(made))


def manifest_digest(one: Manifest) -> str:
    """The digest that fits a manifest: of all its fields but the digest itself and the time of writing."""
    return codec.digest(msgspec.to_builtins(msgspec.structs.replace(one, digest="", written="")))


def manifest_path(log: str) -> Path | None:
    """The file for the manifests of a log, next to it; None for a log that is not a local file."""
    if "://" in log and not log.startswith("sqlite://"):
        return None
    path = Path(log.removeprefix("sqlite:///").removeprefix("sqlite://"))
    return path.with_name(f"{path.name}.manifest.json")


def read_manifests(log: str) -> tuple[Manifest, ...]:
    """The manifests of the runs into a log, in order; an empty tuple without a file of them.

    Raises:
        InvalidInput: the file is damaged.
    """
    path = manifest_path(log)
    if path is None or not path.is_file():
        return ()
    try:
        return MESSAGE.decoded(path.read_bytes(), _decode)
    except (InvalidInput, OSError) as error:
        raise InvalidInput(f"{path} is not a file of manifests: {error}") from None


def write_manifest(log: str, manifest: Manifest) -> None:
    """Adds a manifest to those of a log, unless the last one says the same; nothing for a URL.

    Raises:
        InvalidInput: the file of manifests is damaged.
    """
    path = manifest_path(log)
    if path is None:
        return
    held = read_manifests(log)
    if held and msgspec.structs.replace(held[-1], written=manifest.written) == manifest:
        return
    text = msgspec.json.format(msgspec.json.encode((*held, manifest)), indent=2)
    with output_file(path, OutputRules((), replace=True)) as file:
        file.write(text + b"\n")


async def check_designs(log: EventLog, task: str, design: str) -> None:
    """Refuses a log with sessions of a task and another design.

    Raises:
        InvalidInput: it does.
    """
    found: Counter[str] = Counter()
    async for summary in log.sessions():
        held = summary.group.get("manifest") if summary.task == task else None
        if held is not None and held != design[:_SHOWN]:
            found[held] += 1
    if found:
        raise InvalidInput(
            f"the log holds {quantity(found.total(), 'session')} of {task} of another design "
            f"({', '.join(found)}; this is {design[:_SHOWN]}): name another log with --log, or pool them "
            "with --pool"
        )


def stamped(opened: SessionOpened, design: str) -> SessionOpened:
    """The opening of a session with the digest of its design, which is also in its labels, shortened."""
    group = opened.config.get("group")
    labels = dict(group) if isinstance(group, Mapping) else {}
    labels["manifest"] = design[:_SHOWN]
    config = {**opened.config, "group": labels, "manifest": {"design": design}}
    return msgspec.structs.replace(opened, config=config)


def _settings(experiment: Experiment) -> Mapping[str, JSON]:
    found: dict[str, JSON] = msgspec.json.decode(msgspec.json.encode(experiment))
    return found


def _dependencies() -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        named = requires("duolog") or []
    except PackageNotFoundError:
        named = []
    for requirement in named:
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


def _commit() -> str | None:
    """The commit of the checkout that this runs from, as git's own files say; None without one."""
    git = Path(__file__).resolve().parents[1] / ".git"
    try:
        if git.is_file():  # one of several work trees
            git = Path(git.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
        shared = git / "commondir"
        home = (git / shared.read_text(encoding="utf-8").strip()) if shared.is_file() else git
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        loose = home / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        packed = (home / "packed-refs").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.MULTILINE)
    return found[1] if found else None
