"""The release, before it is made: ``make release-check`` builds, compares, checks and installs it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import duolog
import pytest
from distribution import copy_of_the_tree, sources
from documents import snippets
from duolog.engine.events import EVENTS
from duolog.engine.log.sqlite.tables import APPLICATION, LAYOUT

pytestmark = pytest.mark.release

GOLDEN = Path(__file__).parent / "engine" / "log" / "golden"


class Distributions(NamedTuple):
    wheel: Path
    source: Path


def run(*command: str | Path, where: Path) -> str:
    """The output of a program, which has to succeed outside of the checkout."""
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        cwd=where,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """The source distribution of the tree, and the wheel that is built from that."""
    scratch = tmp_path_factory.mktemp("release")
    tree = copy_of_the_tree(root, scratch / "tree")
    run(
        *(
            sys.executable,
            "-P",
            "-m",
            "build",
            "--no-isolation",
            "--outdir",
            scratch / "dist",
            tree,
        ),
        where=scratch,
    )
    [wheel] = (scratch / "dist").glob("*.whl")
    [source] = (scratch / "dist").glob("*.tar.gz")
    return Distributions(wheel, source)


@pytest.fixture(scope="module")
def installed(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment, in which the wheel and nothing else is installed."""
    where = tmp_path_factory.mktemp("installed")
    venv.create(where / "venv", with_pip=True)
    programs = where / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", built.wheel, where=where)
    return programs


def pythons() -> list[Path]:
    """One interpreter of each supported version that this machine has."""
    found: dict[tuple[int, ...], Path] = {sys.version_info[:2]: Path(sys.executable)}
    for folder in sorted((Path.home() / ".pyenv" / "versions").glob("3.*")):
        version = tuple(int(part) for part in folder.name.split(".")[:2] if part.isdigit())
        if version >= (3, 11) and (folder / "bin" / "python").exists():
            found.setdefault(version, folder / "bin" / "python")
    for minor in range(11, 16):
        if (named := shutil.which(f"python3.{minor}")) is not None:
            found.setdefault((3, minor), Path(named))
    return [found[version] for version in sorted(found)]


@pytest.mark.parametrize("kind", ["wheel", "source"])
@pytest.mark.parametrize("python", pythons(), ids=lambda python: f"{python.parents[1].name}")
def test_it_installs_and_runs_on_every_python_there(
    python: Path, kind: str, built: Distributions, tmp_path: Path
) -> None:
    run(python, "-m", "venv", tmp_path / "venv", where=tmp_path)
    programs = tmp_path / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "-q", getattr(built, kind), where=tmp_path)
    assert duolog.__version__ in run(programs / "duolog", "--version", where=tmp_path)
    play = ("run", "tutoring", "--agents", "one-stage", "--sessions", "2", "--log", "a.db")
    assert "one-stage" in run(programs / "duolog", *play, where=tmp_path)
    assert "one-stage" in run(programs / "duolog", "report", "a.db", where=tmp_path)


def test_the_names_are_those_of_the_version(built: Distributions) -> None:
    assert built.wheel.name == f"duolog-{duolog.__version__}-py3-none-any.whl"
    assert built.source.name == f"duolog-{duolog.__version__}.tar.gz"


def test_the_wheel_from_the_source_distribution_holds_the_tree(
    root: Path, built: Distributions
) -> None:
    with ZipFile(built.wheel) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(name.removeprefix("duolog/") for name in names) == sorted(sources(root))


def test_the_wheel_is_small_and_the_workbench_a_small_part_of_it(built: Distributions) -> None:
    """In bytes, compressed. Sources of Python are 86 % of the wheel; no file of the workbench is
    vendored or made by a build.
    """
    assert built.wheel.stat().st_size < 2_400_000
    with ZipFile(built.wheel) as wheel:
        sizes = {info.filename: info.compress_size for info in wheel.infolist()}
    parts = (
        "duolog/interop/workbench/",
        "duolog/experiments/workbench.py",
        "duolog/cli/commands/workbench.py",
    )
    bench = {name: size for name, size in sizes.items() if name.startswith(parts)}
    assert sum(bench.values()) < 200_000
    assert sum(size for name, size in bench.items() if "/assets/" in name) < 75_000


def test_the_source_distribution_holds_the_tree_and_how_to_build_it(
    root: Path, built: Distributions
) -> None:
    with tarfile.open(built.source) as archive:
        files = {member.name.partition("/")[2] for member in archive if member.isfile()}
    about = {path.name for path in root.glob("[A-Z]*") if path.is_file()}
    made = {"PKG-INFO", ".gitignore"}
    assert files - made == set(sources(root)) | about | {
        "pyproject.toml",
        ".ci/editable.py",
        ".ci/readme.py",
    }


def test_an_index_takes_them(built: Distributions) -> None:
    shown = run(
        *(sys.executable, "-P", "-m", "twine", "check", "--strict", built.wheel, built.source),
        where=built.wheel.parent,
    )
    assert shown.count("PASSED") == 2


def test_the_changelog_begins_with_the_version(root: Path) -> None:
    """Before the release, with the unreleased changes."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    [title, entries] = re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[0]
    dated = rf"\[{re.escape(duolog.__version__)}\] - \d{{4}}-\d\d-\d\d"
    assert title == "[Unreleased]" or re.fullmatch(dated, title)
    assert re.search(r"^- \S", entries, re.MULTILINE)


def test_the_version_stands_in_one_place(root: Path) -> None:
    """But for the changelog, the citation, and data that say which version wrote them: of tests, and fitted rules."""
    tracked = run("git", "grep", "-lF", duolog.__version__, where=root).splitlines()
    elsewhere = {name for name in tracked if not name.startswith("tests/")}
    elsewhere -= {str(path.relative_to(root)) for path in root.glob("examples/*/control.toml")}
    assert elsewhere <= {"_version.py", "CHANGELOG.md", "CITATION.cff"}


@pytest.mark.parametrize("number", range(1, 1 + max(event.schema for event in EVENTS.values())))
def test_logs_of_every_schema_are_read(number: int, installed: Path, tmp_path: Path) -> None:
    log, golden = tmp_path / "golden.db", GOLDEN / f"schema-{number}.jsonl"
    run(installed / "duolog", "import", golden, "--log", log, where=tmp_path)
    assert "golden" in run(installed / "duolog", "sessions", log, where=tmp_path)


@pytest.mark.parametrize("number", range(1, 1 + LAYOUT))
def test_logs_of_every_layout_are_read(number: int, installed: Path, tmp_path: Path) -> None:
    log = tmp_path / "golden.db"
    connection = sqlite3.connect(log)
    connection.executescript((GOLDEN / f"layout-{number}.sql").read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    assert "golden" in run(installed / "duolog", "sessions", log, where=tmp_path)


def test_installed_it_says_its_version(installed: Path, tmp_path: Path) -> None:
    assert duolog.__version__ in run(installed / "duolog", "--version", where=tmp_path)


def test_installed_it_runs_the_first_program_of_the_readme(
    root: Path, installed: Path, tmp_path: Path
) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    first = next(snippet for snippet in snippets(readme) if snippet.language == "python")
    assert run(installed / "python", "-P", "-W", "error", "-c", first.text, where=tmp_path).strip()


def test_the_tag_the_citation_and_the_package_name_one_version(root: Path) -> None:
    cited = re.search(
        r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert cited is not None
    assert cited[1] == duolog.__version__
    workflow = (root / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    [command] = re.findall(r'v\$\((sed -n .+? _version\.py)\)"', workflow)
    done = subprocess.run(
        ["sh", "-c", command], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == duolog.__version__
