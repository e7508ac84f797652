"""What installed packages offer is found as it is now, and read no more often than it changes."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from duolog.engine.loading import entry_points

GROUP = "duolog.birds"


def install(where: Path, name: str, value: str, *, at: int) -> None:
    """Puts a package there that offers something; ``at`` is when, in nanoseconds."""
    about = where / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n", encoding="utf-8")
    os.utime(where, ns=(at, at))


def offered() -> list[tuple[str, str]]:
    return sorted((entry.name, entry.value) for entry in entry_points(group=GROUP))


def test_what_was_installed_or_removed_since_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered() == []
    monkeypatch.syspath_prepend(tmp_path)
    assert offered() == []
    install(tmp_path, "wren", "birds:small", at=1_000_000_000)
    assert offered() == [("wren", "birds:small")]
    install(tmp_path, "heron", "birds:large", at=2_000_000_000)
    assert offered() == [("heron", "birds:large"), ("wren", "birds:small")]
    shutil.rmtree(tmp_path / "wren-1.dist-info")
    os.utime(tmp_path, ns=(3_000_000_000, 3_000_000_000))
    assert offered() == [("heron", "birds:large")]


def test_nothing_is_read_again_where_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "wren", "birds:small", at=4_000_000_000)
    assert offered() == [("wren", "birds:small")]
    monkeypatch.setattr(metadata, "entry_points", None)
    assert offered() == [("wren", "birds:small")]
