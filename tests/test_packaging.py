"""The distribution: the wheel's contents, against the tree; its metadata; its extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duolog
import pytest
from distribution import copy_of_the_tree, sources

pytestmark = pytest.mark.slow


def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """The wheel of the current tree, built in a copy, so that old builds cannot leak into it."""
    scratch = tmp_path_factory.mktemp("wheel")
    copy_of_the_tree(root, scratch / "tree")
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])",
            str(scratch),
        ],
        cwd=scratch / "tree",
        check=True,
        capture_output=True,
        text=True,
    )
    [path] = scratch.glob("*.whl")
    with ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def test_the_wheel_holds_the_tree(root: Path, wheel: ZipFile) -> None:
    held = {
        name.removeprefix("duolog/")
        for name in wheel.namelist()
        if ".dist-info/" not in name and not name.endswith("/")
    }
    assert held == set(sources(root))


def test_the_workbench_is_small_with_all_its_assets(wheel: ZipFile) -> None:
    parts = [one for one in wheel.infolist() if "/interop/workbench/" in one.filename]
    assert sum(one.compress_size for one in parts) < 200_000
    assert {one.filename.rpartition(".")[2] for one in parts} == {"py", "js", "css", "svg"}


def test_the_wheel_holds_the_licence(root: Path, wheel: ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")]
    assert wheel.read(name) == (root / "LICENSE").read_bytes()


def test_the_wheel_installs_the_command(wheel: ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "duolog = duolog.cli:main" in wheel.read(name).decode()


def test_every_entry_point_is_there(root: Path) -> None:
    about = project(root)["project"]
    groups = [about["scripts"], *about.get("entry-points", {}).values()]
    for target in (target for group in groups for target in group.values()):
        module, _, name = target.partition(":")
        found = import_module(module)
        assert not name or callable(getattr(found, name)), target


def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "duolog"
    assert metadata["Version"] == duolog.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert {url.split(",")[0] for url in metadata.get_all("Project-URL", [])} >= {"Repository"}


def test_links_and_images_of_the_readme_are_absolute_on_an_index(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) >= 20
    assert [link for link in links if not link.startswith("https://")] == []


def test_core_dependencies_are_few_and_bounded(metadata: Message) -> None:
    required = [r for r in metadata.get_all("Requires-Dist", []) if "extra ==" not in r]
    names = {re.split(r"[^\w-]", r)[0] for r in required}
    assert names == {
        "aiosqlite",
        "anyio",
        "jsonpatch",
        "jsonpointer",
        "jsonschema",
        "msgspec",
        "numpy",
        "rich",
        "structlog",
        "typer",
    }
    assert [r for r in required if ">=" not in r or "<" not in r] == []


def test_the_page_on_starting_names_every_extra(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (root / "docs" / "start.md").read_text(encoding="utf-8")
    extras = {*project["optional-dependencies"]} - {"all", "dev", "docs"}
    assert {extra for extra in extras if f"`{extra}`" not in page} == set()


def test_the_extra_all_has_every_extra(root: Path) -> None:
    extras = project(root)["project"]["optional-dependencies"]
    frameworks = {"gymnasium", "trl", "verifiers"}  # gigabytes, of which a training run needs one
    others = set(extras) - {"all", "dev", "docs"} - frameworks
    assert extras["all"] == [f"duolog[{','.join(sorted(others))}]"]
