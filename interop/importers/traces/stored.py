"""Conversations of spans in a file.

A conversation may be spread over all of it. So a file that is too long to be held is gone through twice: first to see which
spans belong together, of which little is kept, then conversation by conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ..conversation.transcript import read_transcript
from ..json_files import pieces_of
from ..json_stream import Member, read_at
from ..protocol import Diagnostic, Found, Reading
from .conversations import by_session, transcripts_of
from .spans import Span

__all__ = ("ReadsSpans", "SpanPiece", "read_held", "read_stored")

ReadsSpans: TypeAlias = Callable[[bytes | msgspec.Raw, str], Iterable[Span | Diagnostic]]
"""Reads the spans in a piece of a file, with the place of the piece; always the same."""


class SpanPiece(NamedTuple):
    """A piece of a file, with one span or several.

    Attributes:
        where: its place, in words.
        member: its place in the file.
        data: its JSON.
    """

    where: str
    member: Member
    data: bytes


class _Place(NamedTuple):
    """The place of a span: its piece, and its number in the piece."""

    piece: int
    number: int


def read_held(source: Path, read: ReadsSpans, format: str, reading: Reading) -> Iterator[Found]:
    """The conversations in a file that may be held as a whole.

    Args:
        source: the file.
        read: reads the spans of a piece.
        format: name of the importer.
        reading: how times are read.

    Raises:
        InvalidInput: the file cannot be read.
    """
    spans: list[Span] = []
    for piece in pieces_of(source):
        for found in read(piece.data, piece.where):
            if isinstance(found, Diagnostic):
                yield found
            else:
                spans.append(found)
    for transcript in transcripts_of(spans, format=format, where=str(source)):
        yield from read_transcript(transcript, reading)


def read_stored(
    path: Path, pieces: Iterable[SpanPiece], read: ReadsSpans, format: str, reading: Reading
) -> Iterator[Found]:
    """The conversations in a file.

    Args:
        path: the path of the file.
        pieces: the pieces of the file, in order.
        read: reads the spans of a piece.
        format: name of the importer.
        reading: how times are read.

    Raises:
        InvalidInput: the file cannot be read.
    """
    members: list[tuple[str, Member]] = []
    places: dict[tuple[str, str], _Place] = {}
    outlines: list[Span] = []
    for piece in pieces:
        members.append((piece.where, piece.member))
        for number, found in enumerate(read(piece.data, piece.where)):
            if isinstance(found, Diagnostic):
                yield found
            elif (found.trace, found.id) not in places:
                places[found.trace, found.id] = _Place(len(members) - 1, number)
                outlines.append(_outline(found))
    for group in by_session(outlines).values():
        wanted: dict[int, set[int]] = {}
        for one in group:
            place = places[one.trace, one.id]
            wanted.setdefault(place.piece, set()).add(place.number)
        spans: list[Span] = []
        for index in sorted(wanted):
            where, member = members[index]
            again = enumerate(read(read_at(path, member), where))
            spans += [one for n, one in again if isinstance(one, Span) and n in wanted[index]]
        for transcript in transcripts_of(spans, format=format, where=str(path)):
            yield from read_transcript(transcript, reading)


def _outline(span: Span) -> Span:
    """A span without its contents: only the parts that place it in a conversation."""
    return msgspec.structs.replace(span, input=None, output=None, where="", name="", error=None)
