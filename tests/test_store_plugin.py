"""A store that another package brings: the one of ``docs/write-a-store.md``, used by commands."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from documents import snippets
from forked import run_forked

pytestmark = pytest.mark.slow

RUN = (
    "run",
    "finance",
    "--agents",
    "one-stage",
    "--users",
    "proactive",
    "--sessions",
    "1",
    "--max-rounds",
    "3",
)


@pytest.fixture
def installed(tmp_path: Path, root: Path) -> Path:
    """A folder with the module of the page, and its installation metadata."""
    page = (root / "docs" / "write-a-store.md").read_text(encoding="utf-8")
    module = next(s.text for s in snippets(page) if s.text.startswith("# file_log.py"))
    folder = tmp_path / "site"
    about = folder / "toy_store-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "file_log.py").write_text(module, encoding="utf-8")
    broken = "def fails(url, **options):\n    raise ValueError(url)\n\n\ndef half(url, **options):\n    return 1\n"
    (folder / "broken.py").write_text(broken)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-store\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[duolog.stores]\ntoy = file_log:open_toy\nraises = broken:fails\nother = broken:missing\n"
        "half = broken:half\n"
    )
    return folder


def duolog(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    return run_forked(["-P", "-m", "duolog", *arguments], installed.parent, environment)


def test_commands_use_the_store_of_a_package(installed: Path) -> None:
    ran = duolog(installed, *RUN, "--log", "toy://trips.jsonl")
    assert ran.returncode == 0, ran.stderr
    assert (installed.parent / "trips.jsonl").stat().st_size > 1000
    listed = duolog(installed, "sessions", "toy://trips.jsonl", "--json")
    [session] = json.loads(listed.stdout)
    assert (session["task"], session["state"]) == ("finance", "limit")
    again = duolog(installed, *RUN, "--log", "toy://trips.jsonl")
    assert again.returncode == 0, again.stderr
    name = session["session"]
    for command in (
        ("report", "toy://trips.jsonl"),
        ("show", "toy://trips.jsonl", name),
        ("export", "toy://trips.jsonl"),
        ("verify", "toy://trips.jsonl"),
        ("fork", "toy://trips.jsonl", name, "--at-round", "2"),
        ("copy", "toy://trips.jsonl", "toy://copy.jsonl"),
        ("forget", "toy://trips.jsonl", name, "--yes"),
    ):
        done = duolog(installed, *command)
        assert done.returncode == 0, (command, done.stderr)
    states = json.loads(duolog(installed, "sessions", "toy://trips.jsonl", "--json").stdout)
    assert {line["session"]: line["state"] for line in states}[name] == "forgotten"
    copied = json.loads(duolog(installed, "report", "toy://copy.jsonl", "--json").stdout)
    assert [group["sessions"] for group in copied["groups"]] == [1]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (
            "toys://a",
            "no store for 'toys://a'. Did you mean toy://? A log is a path, or a URL that",
        ),
        ("toy://missing.jsonl", "no log at missing.jsonl"),
        ("raises://a", "ValueError"),
        ("other://a", "missing"),
        ("half://a", "lacks what a Store has: url, append"),
    ],
)
def test_a_store_that_cannot_be_is_one_sentence(installed: Path, url: str, why: str) -> None:
    done = duolog(installed, "report", url)
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr
