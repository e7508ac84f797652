"""Real samples of foreign formats: each has to hold what was counted in it without Duolog.

The samples do not belong to the project; if they are absent, these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from duolog.engine.events import SessionOpened
from duolog.interop.importers.protocol import Importer, Reading
from duolog.interop.importers.registry import (
    find_importer,
    importer_names,
    installed_importers,
    recognise,
)
from foreign_logs import read
from sample_counts import counted, differences, expected_of

FORMATS: Mapping[str, str] = {
    "ag-ui": "ag-ui",
    "anthropic-messages": "chat",
    "atif": "atif",
    "claude-code": "claude-code",
    "codex": "codex",
    "inspect": "inspect",
    "langfuse": "langfuse",
    "lmsys": "lmsys",
    "openhands": "openhands",
    "openinference": "openinference",
    "otlp": "otlp",
    "sharegpt": "sharegpt",
    "swe-agent": "swe-agent",
}
"""Directories of samples, and the importer for each."""


def samples(directory: Path) -> list[Path]:
    return [
        path
        for path in sorted(directory.iterdir())
        if path.with_name(path.name + ".expected.json").exists()
    ]


@pytest.mark.parametrize("directory", FORMATS)
def test_samples_hold_what_was_counted_in_them(
    directory: str, test_data: Callable[[str], Path]
) -> None:
    importer = find_importer(FORMATS[directory])
    wrong: dict[str, object] = {}
    for sample in samples(test_data(f"formats/{directory}")):
        expected, found = expected_of(sample), list(counted(importer, sample).values())
        if len(expected) != len(found):
            wrong[sample.name] = (len(expected), len(found))
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            if unlike := differences(one, other):
                wrong[f"{sample.name} {number}"] = unlike
    assert not wrong


@pytest.mark.parametrize("directory", FORMATS)
def test_samples_are_recognised_by_their_importer_alone(
    directory: str, test_data: Callable[[str], Path]
) -> None:
    importers = installed_importers()
    for sample in samples(test_data(f"formats/{directory}")):
        importer = recognise(sample, importers)
        assert getattr(importer, "name", None) == FORMATS[directory], sample


def test_every_directory_names_an_importer_that_there_is() -> None:
    assert set(FORMATS.values()) <= set(importer_names())


@pytest.mark.parametrize("directory", ["claude-code", "codex"])
def test_what_is_read_while_a_file_grows_stays_as_it_was_read(
    directory: str, test_data: Callable[[str], Path], tmp_path: Path
) -> None:
    importer = find_importer(directory)
    for sample in samples(test_data(f"formats/{directory}")):
        lines = sample.read_bytes().splitlines(keepends=True)
        growing = tmp_path / sample.name
        growing.write_bytes(b"".join(lines))
        whole = acts_in(importer, growing)
        for end in range(1, len(lines), 7):
            growing.write_bytes(b"".join(lines[:end]))
            begun = acts_in(importer, growing)
            assert begun == whole[: len(begun)], (sample.name, end)


def acts_in(importer: Importer, path: Path) -> list[tuple[object, ...]]:
    """Messages and acts, without the opening, which may change later."""
    events, _ = read(importer, path, Reading(growing=True))
    return [
        (one.session, one.draft.actor, one.draft.time, one.draft.event)
        for one in events
        if not isinstance(one.draft.event, SessionOpened)
    ]
