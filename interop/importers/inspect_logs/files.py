"""The samples of a log of Inspect: a document, or an archive with a document for each sample."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..json_files import decode, load
from ..json_stream import Member, elements_of, members_of, read_at
from ..protocol import Remark
from .members import read_member

__all__ = ("Evaluation", "Sample", "is_archive", "samples_in")

_HEADER: Final = "header.json"
_STARTED: Final = "_journal/start.json"
_SAMPLES: Final = "samples/"


class Evaluation(msgspec.Struct):
    """What was evaluated."""

    task: str | None = None
    model: str | None = None
    run_id: str | None = None
    eval_id: str | None = None
    created: str | None = None


class Sample(msgspec.Struct):
    """One sample in one epoch."""

    id: str | int
    epoch: int = 1
    messages: list[Mapping[str, JSON]] | None = None
    input: JSON = None
    target: JSON = None
    scores: Mapping[str, Mapping[str, JSON]] | None = None
    score: Mapping[str, JSON] | None = None  # of old, where there was one scorer
    metadata: Mapping[str, JSON] | None = None
    events: list[Mapping[str, JSON]] | None = None
    attachments: Mapping[str, str] | None = None
    model_usage: Mapping[str, Mapping[str, JSON]] | None = None
    error: JSON = None
    limit: JSON = None


class _Log(msgspec.Struct):
    eval: Evaluation


class _Key(msgspec.Struct):
    id: str | int
    epoch: int = 1


class _Found(NamedTuple):
    """Where a sample lies: in a document, or under a name in an archive."""

    key: tuple[str, int]
    where: str
    place: Member | str


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of Inspect."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names & {_HEADER, _STARTED})


def samples_in(path: Path) -> Iterator[tuple[Evaluation, Sample, str] | Remark]:
    """The samples of a log, by their ids as text and by epochs, with what was evaluated and where
    each lies; a remark for one that cannot be read.

    Raises:
        InvalidInput: the file cannot be read, or is no log of Inspect.
        MissingExtra: it is compressed with Zstandard, and nothing here reads that.
    """
    evaluation, found = _archived(path) if zipfile.is_zipfile(path) else _listed(path)
    for one in sorted(found, key=lambda one: one.key):
        try:
            yield evaluation, decode(_read(path, one.place), Sample), one.where
        except InvalidInput as error:
            yield Remark("problem", f"no sample: {error}", one.where)


def _read(path: Path, place: Member | str) -> bytes:
    if isinstance(place, Member):
        return read_at(path, place)
    try:
        with zipfile.ZipFile(path) as archive:
            return read_member(archive, place)
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error


def _keyed(where: str, data: bytes, place: Member | str) -> _Found:
    try:
        key = decode(data, _Key)
    except InvalidInput:
        return _Found(("", 0), where, place)
    return _Found((str(key.id), key.epoch), where, place)


def _listed(path: Path) -> tuple[Evaluation, list[_Found]]:
    """What one document holds: where its samples lie, since they may be more than fit into memory."""
    members = members_of(path)
    if "eval" not in members:
        raise InvalidInput(f"{path} is no log of Inspect: it has no eval")
    evaluation = load(read_at(path, members["eval"]), Evaluation, f"{path}, eval")
    samples = members.get("samples")
    if samples is None or read_at(path, samples._replace(size=1)) != b"[":
        return evaluation, []
    found = [
        _keyed(f"{path}, sample {number}", data, place)
        for number, (place, data) in enumerate(elements_of(path, samples.offset), start=1)
    ]
    return evaluation, found


def _archived(path: Path) -> tuple[Evaluation, list[_Found]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = next((name for name in (_HEADER, _STARTED) if name in names), None)
            if header is None:
                raise InvalidInput(f"{path} is no log of Inspect: it has no {_HEADER}")
            log = load(read_member(archive, header), _Log, f"{path}, {header}")
            found = [
                _keyed(f"{path}, {name}", read_member(archive, name), name)
                for name in dict.fromkeys(names)
                if name.startswith(_SAMPLES) and name.endswith(".json")
            ]
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    return log.eval, found
