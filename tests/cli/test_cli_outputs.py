"""No command loses data: outputs are written in one way, and nothing is erased unasked."""

from __future__ import annotations

import ast
import shutil
import typing
from collections.abc import Iterator
from pathlib import Path

import anyio
import duolog
import pytest
import typer.models
from duolog.cli import main
from duolog.cli.app import app
from duolog.engine.log.exchange import jsonl_export
from duolog.engine.log.open import open_log
from typer.models import OptionInfo

pytestmark = pytest.mark.usefixtures("plain")

ROOT = Path(duolog.__file__).parent
PACKAGES = ("agents", "cli", "engine", "examples", "interop", "scoring", "telemetry", "testing")

# --- one way to write ------------------------------------------------------------------------------

WRITERS = {
    "engine/log/exchange/output_file.py": "the one way to write an output file",
    "agents/external/workspace.py": "files of a temporary directory that a coding agent works in",
    "engine/models/traffic/cache.py": "replies of models, kept by digest: nobody names the files",
    "cli/chat/editor.py": "a temporary file for the editor of the person who chats",
    "cli/__init__.py": "the null device, where the reader of the output is gone",
    "cli/chat/screen.py": "the null device, likewise",
    "interop/workbench/access/sharing.py": "the list of links that were made, a line added for each",
    "scoring/columns/parquet.py": "a directory that holds nothing but tables, under names of their own",
    "testing/simulator/around.py": "files of a log that the simulator harms, in a directory of its own",
    "testing/simulator/drills/exchange.py": "exports that a drill damages, in a directory of its own",
    "testing/simulator/drills/files.py": "files of a log that a drill damages, likewise",
    "testing/simulator/machine/disk.py": "a log that a test damages, as a loss of power does",
}
"""Sources that open files for writing by themselves, and why they may."""

MAKING = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "copyfile", "touch"}


def calls_that_write(source: Path) -> Iterator[str]:
    """The calls in a source that make or change a file."""
    text = source.read_text(encoding="utf-8")
    if not any(name in text for name in (*MAKING, "open")):
        return  # without parsing it, which takes longer than all else here
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        given = [*node.args, *(word.value for word in node.keywords if word.arg == "mode")]
        modes = [one.value for one in given if isinstance(one, ast.Constant)]
        writes = any(
            isinstance(mode, str)
            and set(mode) & set("wax+") <= set(mode)
            and mode.strip("rwabxt+") == ""
            and set(mode) & set("wax+")
            for mode in modes
        )
        if name in MAKING or (name in ("open", "fdopen") and writes):
            yield f"{name} in line {node.lineno}"


def test_files_are_written_in_one_way() -> None:
    """A new command that writes a file by itself might write over a log: use ``output_file``."""
    found = {
        str(source.relative_to(ROOT)): calls
        for package in PACKAGES
        for source in sorted((ROOT / package).rglob("*.py"))
        if (calls := list(calls_that_write(source)))
    }
    assert found.keys() == WRITERS.keys(), found


# --- every option that names an output -------------------------------------------------------------

OUTPUTS = {
    ("bundle", "--output"): "{out}",
    ("export", "--output"): "{out}",
    ("report", "--html"): "{out}",
    ("report", "--notebook"): "{out}",
    ("report", "--figures"): "{directory}",
    ("profile", "--html"): "{out}",
    ("tune", "--output"): "{out}",
}
"""Options that name what a command writes, and what to give them so that ``out`` is written."""

READ = {
    "bundle": ("a.db", "--licence", "CC0-1.0", "--bootstrap", "0"),
    "tune": ("travel", "--trials", "1", "--sessions", "1", "--seeds", "1", "--users", "lazy"),
    "profile": ("polisher", "--tasks", "finance", "--bootstrap", "9", "--log", "a.db"),
}
"""The argument before the option, for commands that do not take a log."""

INPUTS = {
    ("chat", "--cache"),
    ("chat", "--dataset"),
    ("counterfactual", "--dataset"),
    ("fork", "--cache"),
    ("fork", "--dataset"),
    ("forget", "--cache"),
    ("forget", "--spill"),
    ("forget", "--tables"),
    ("import", "--mapping"),
    ("run", "--cache"),
    ("run", "--dataset"),
    ("score", "--cache"),
    ("profile", "--cache"),
    ("tune", "--dataset"),
    ("score", "--rubric"),
    ("serve", "--token-file"),
    ("workbench", "--dataset"),
    ("workbench", "--token-file"),
}
"""Options that name what a command reads, or the directory of a response cache or tables."""

FOLDERS = {("new", "--directory")}
"""Options that name a folder for files with other names, and never replace a file."""


def options_of(command: typer.models.CommandInfo) -> Iterator[tuple[str, object, OptionInfo]]:
    """The options of a command: name, type, and how it is declared."""
    assert command.callback is not None
    for name, hint in typing.get_type_hints(command.callback, include_extras=True).items():
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                flags = [flag for flag in info.param_decls or () if flag.startswith("--")]
                yield (flags or [f"--{name.replace('_', '-')}"])[0], hint.__origin__, info


def options_with_paths() -> Iterator[tuple[str, str]]:
    """All options of all commands that take a path, logs apart: every command checks those."""
    for command in app.registered_commands:
        for name, kind, info in options_of(command):
            if Path in (kind, *typing.get_args(kind)) or info.metavar in ("PATH", "FILE", "DIR"):
                yield command.name or "", name


def test_every_option_that_names_an_output_is_tested_here() -> None:
    assert {*options_with_paths()} - INPUTS - FOLDERS == OUTPUTS.keys()


CASES = [pytest.param(*key, form, id=" ".join(key)) for key, form in OUTPUTS.items()]
FORMS = ["jsonl", "chat", "responses", "trajectories", "rounds", "sessions"]


@pytest.fixture
def place(dinner: Path, tmp_path: Path) -> Path:
    """A directory with a log, another log, and a symbolic link to each."""
    for name in ("a.db", "b.db"):
        shutil.copy(dinner, tmp_path / name)
        (tmp_path / f"to-{name}").symlink_to(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(("command", "option", "form"), CASES)
@pytest.mark.parametrize("name", ["a.db", "to-a.db", "b.db", "to-b.db", "b.db-wal"])
@pytest.mark.parametrize("force", [False, True], ids=["", "force"])
def test_no_command_writes_over_a_log(
    place: Path,
    command: str,
    option: str,
    form: str,
    name: str,
    force: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    out, directory = place / name, place / "figures"
    if "directory" in form:  # the command names the files in it
        directory.mkdir()
        (directory / "curve.png").symlink_to(out)
    before = {path: path.read_bytes() for path in place.iterdir() if path.is_file()}
    told = form.format(out=f"./{name}", directory=directory)
    arguments = [
        command,
        *READ.get(command, ("a.db",)),
        option,
        told,
        *(["--force"] if force else []),
    ]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "is what this command reads" in said or "is a Duolog log, or part of one" in said
    assert {path: path.read_bytes() for path in place.iterdir() if path.is_file()} == before
    assert [path.name for path in directory.glob("*")] in ([], ["curve.png"])


@pytest.mark.parametrize(("command", "option", "form"), CASES)
def test_another_file_is_replaced_by_force_only(
    place: Path,
    command: str,
    option: str,
    form: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    directory = place / "figures"
    out = directory / "curve.png" if "directory" in form else place / "out"
    directory.mkdir()
    out.write_bytes(b"precious")
    read = READ.get(command, (str(place / "a.db"),))
    if option == "--figures":  # groups of fewer than five sessions are not drawn
        trips = str(place / "trips.db")
        assert (
            main(["run", "travel", "--agents", "one-stage", "--sessions", "5", "--log", trips]) == 0
        )
        read = (trips,)
    arguments = [command, *read, option, form.format(out=out, directory=directory)]
    assert main(arguments) == 2
    assert (
        "exists: give the output another name, or replace it by --force" in capsys.readouterr().err
    )
    assert out.read_bytes() == b"precious"
    assert len(list(directory.iterdir())) == (out.parent == directory)
    assert main([*arguments, "--force"]) == 0
    assert out.read_bytes() != b"precious"


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_an_export_writes_over_its_log(place: Path, form: str) -> None:
    before = (place / "a.db").read_bytes()
    for name in ("a.db", "a.db-shm"):
        assert (
            main(
                [
                    "export",
                    str(place / "a.db"),
                    "--format",
                    form,
                    "--output",
                    str(place / name),
                    "--force",
                ]
            )
            == 2
        )
    assert (place / "a.db").read_bytes() == before


def test_a_report_does_not_replace_the_file_that_it_reads(place: Path) -> None:
    lines = place / "trajectories.jsonl"
    main(["export", str(place / "a.db"), "--format", "trajectories", "--output", str(lines)])
    before = lines.read_bytes()
    assert main(["report", str(lines), "--html", str(lines), "--force"]) == 2
    assert lines.read_bytes() == before


@pytest.mark.parametrize("contents", [b"", b'{"a": 1}\n'])
def test_an_import_does_not_make_its_source_a_log(
    tmp_path: Path, contents: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(contents)
    (tmp_path / "link.db").symlink_to(source)
    for name in ("in.jsonl", "link.db"):
        assert main(["import", str(source), "--log", str(tmp_path / name)]) == 2
        assert "is the file to import" in capsys.readouterr().err
    assert source.read_bytes() == contents
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_no_litter(
    dinner: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException | type[BaseException],
) -> None:
    def fail(record: object) -> bytes:
        assert len(list(tmp_path.iterdir())) == 1
        raise error

    monkeypatch.setattr(jsonl_export, "to_jsonl", fail)
    code = main(["export", str(dinner), "--output", str(tmp_path / "out.jsonl")])
    assert code == (130 if error is KeyboardInterrupt else 2)
    assert list(tmp_path.iterdir()) == []


# --- what cannot be undone -------------------------------------------------------------------------

IRREVERSIBLE = {"forget": ["chat-7"]}
"""Commands that delete data for good, with their arguments after the log."""


def test_every_command_that_asks_first_is_tested_here() -> None:
    asking = {
        command.name
        for command in app.registered_commands
        if any(name == "--yes" for name, _, _ in options_of(command))
    }
    assert asking == IRREVERSIBLE.keys()


@pytest.mark.parametrize("command", IRREVERSIBLE)
def test_what_cannot_be_undone_is_refused_where_nobody_can_be_asked(
    place: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, rest = str(place / "a.db"), IRREVERSIBLE[command]
    before = (place / "a.db").read_bytes()
    assert main([command, log, *rest]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert (place / "a.db").read_bytes() == before
    assert main([command, log, *rest, "--yes"]) == 0

    async def state() -> str:
        async with open_log(log) as opened:
            return (await opened.summary("chat-7")).state

    assert anyio.run(state) == "forgotten"
