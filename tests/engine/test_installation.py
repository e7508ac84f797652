"""The printed advice on how to add an extra works where it is printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from duolog.engine import installation
from duolog.engine.errors import MissingExtra
from duolog.engine.installation import install_command, program


class Installed:
    """What ``importlib.metadata`` knows of an installation from a directory."""

    def __init__(self, url: str) -> None:
        self._url = url

    def read_text(self, name: str) -> str:
        assert name == "direct_url.json"
        return json.dumps({"url": self._url, "dir_info": {}})


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment below the current directory, which the shell does not search."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / ".venv" / "lib").mkdir()
    for name in ("python", "pip", "duolog"):
        (programs / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    return programs


def test_a_program_is_called_so_that_the_shell_finds_it(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program("duolog") == ".venv/bin/duolog"
    monkeypatch.setenv("PATH", str(environment))
    assert program("duolog") == "duolog"
    assert program("nobody") is None
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(environment)
    assert program("duolog") == "./duolog"
    monkeypatch.chdir(environment.parent / "lib")
    assert program("duolog") == str(environment / "duolog")


def test_an_extra_of_a_checkout_is_installed_from_it(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(installation, "_PACKAGE", tmp_path)
    assert install_command("tui") == ".venv/bin/pip install -e '.[tui]'"
    assert str(MissingExtra("tui", "watching")) == (
        "watching needs an extra: .venv/bin/pip install -e '.[tui]'"
    )
    (environment / "pip").unlink()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    python = environment / "python"
    assert install_command("tui") == f"{python} -m pip install -e '{tmp_path}[tui]'"


@pytest.mark.parametrize("there", [True, False])
def test_elsewhere_it_comes_from_where_this_one_came_from(
    there: bool, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a checkout"
    source.mkdir()
    if there:
        (source / "pyproject.toml").touch()
    monkeypatch.setattr(installation, "_PACKAGE", environment)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed(source.as_uri()))
    expected = "./a checkout[tui]" if there else "duolog[tui]"
    assert install_command("tui") == f".venv/bin/pip install '{expected}'"
