"""Documents of JSON in a file that do not fit in memory: their members are read in place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from ...engine.errors import InvalidInput
from .json_files import load
from .json_sniff import Shape, shape_of
from .json_stream import Member, elements_of, lines_at, members_of, places_of, read_at
from .protocol import Diagnostic

__all__ = ("Document", "documents_in", "is_answer", "listed_in", "listed_keys")

_T = TypeVar("_T")
_CHUNK: Final = 1 << 16
_DATA: Final = "data"
"""Under which interfaces answer with a list."""


class Document(NamedTuple):
    """An object in a file.

    Attributes:
        path: the path of the file.
        where: its place, in words.
        whole: its place in the file; None for the whole file.
        members: the places of its members, by name.
    """

    path: Path
    where: str
    whole: Member | None
    members: Mapping[str, Member]

    def value(self, name: str, type: type[_T]) -> _T | None:
        """A member; None if there is none, or it is null.

        Raises:
            InvalidInput: it is of another type, or cannot be read.
        """
        member = self.members.get(name)
        if member is None:
            return None
        data = read_at(self.path, member)
        return None if data == b"null" else load(data, type, f"{self.where}, {name}")

    def elements(self, name: str) -> Iterator[bytes]:
        """The elements of a member that is an array, one after the other; none if there is none.

        Raises:
            InvalidInput: it is not an array, or cannot be read.
        """
        member = self.members.get(name)
        if member is not None and read_at(self.path, member._replace(size=1)) != b"n":
            yield from (data for _, data in elements_of(self.path, member.offset))

    def inner(self, name: str) -> Iterator[Document]:
        """The objects in a member that is an array.

        Raises:
            InvalidInput: it is not an array of objects, or cannot be read.
        """
        member = self.members.get(name)
        if member is None or read_at(self.path, member._replace(size=1)) == b"n":
            return
        for number, place in enumerate(places_of(self.path, member.offset), start=1):
            where = f"{self.where}, {name} {number}"
            yield Document(self.path, where, place, members_of(self.path, place))

    def digest(self) -> str:
        """A short digest of its text.

        Raises:
            InvalidInput: it cannot be read.
        """
        found = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                file.seek(0 if self.whole is None else self.whole.offset)
                left = self.path.stat().st_size if self.whole is None else self.whole.size
                while left > 0 and (data := file.read(min(left, _CHUNK))):
                    found.update(data)
                    left -= len(data)
        except OSError as error:
            raise InvalidInput(f"cannot read {self.path}: {error.strerror or error}") from error
        return found.hexdigest()[:12]


def documents_in(path: Path) -> Iterator[Document | Diagnostic]:
    """The documents in a file: the object that it is, the elements of its array, or its lines; a
    diagnostic for one that is not an object.

    Raises:
        InvalidInput: the file cannot be read, or is not JSON as a whole.
    """
    shape = shape_of(path)
    if shape is None or shape.form == "object":
        yield Document(path, str(path), None, members_of(path))
        return
    lines = shape.form == "lines"
    places = (member for member, _ in lines_at(path)) if lines else places_of(path)
    for number, place in enumerate(places, start=1):
        where = f"{path}, {'line' if lines else 'element'} {number}"
        try:
            yield Document(path, where, place, members_of(path, place))
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid document: {error}", where)


def is_answer(shape: Shape) -> bool:
    """Whether a file is an object with a list under ``data``, as interfaces answer."""
    return shape.form == "object" and _DATA in shape.keys


def listed_keys(shape: Shape) -> frozenset[str]:
    """The keys of the first object that a file lists, or of the one that it is."""
    return shape.inner.get(_DATA, frozenset()) if is_answer(shape) else shape.keys


def listed_in(path: Path, shape: Shape | None) -> Iterator[tuple[Member, bytes]]:
    """The values that a file lists, with their places: the elements of its array, its lines, or
    those of an answer.

    Args:
        path: the path of the file.
        shape: the shape of its beginning.

    Raises:
        InvalidInput: it cannot be read, or is not JSON as a whole.
    """
    if shape is None or shape.form == "lines":
        return lines_at(path)
    if shape.form == "array":
        return elements_of(path)
    data = members_of(path).get(_DATA)
    return lines_at(path) if data is None else elements_of(path, data.offset)
