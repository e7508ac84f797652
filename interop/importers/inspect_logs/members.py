"""Members of an archive, also those that are compressed as Python's own module reads from 3.14 on.

Inspect compresses with Zstandard where it is told to (``INSPECT_USE_ZSTD``).
"""

from __future__ import annotations

import copy
import lzma
import zipfile
import zlib
from typing import Final

from ....engine.errors import InvalidInput, MissingExtra

__all__ = ("read_member",)

_ZSTANDARD: Final = 93
_MOST: Final = 1 << 30
"""Bytes that one member may have, so that a small archive cannot fill the memory."""

_UNREADABLE: Final = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,  # it is encrypted, or compressed in a way that is not known
)


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """What a member of an archive holds.

    Raises:
        InvalidInput: it is longer than any document should be, is damaged, or cannot be read.
        MissingExtra: it is compressed with Zstandard, and nothing here reads that.
    """
    info = archive.getinfo(name)
    if info.file_size > _MOST:
        raise InvalidInput(f"{archive.filename}, {name}: longer than {_MOST} bytes")
    own = info.compress_type != _ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD")
    try:
        return archive.read(name) if own else _zstandard(archive, info)
    except _UNREADABLE as error:
        raise InvalidInput(f"cannot read {archive.filename}, {name}: {error}") from error


def _zstandard(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        import zstandard
    except ModuleNotFoundError as error:
        what = f"reading {archive.filename}, which is compressed with Zstandard,"
        raise MissingExtra("inspect", what) from error
    with archive.open(_as_stored(info)) as packed:
        try:
            data: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read(info.file_size)
        except zstandard.ZstdError as error:
            raise zipfile.BadZipFile(str(error)) from error
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("its checksum differs")
    return data


def _as_stored(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The member as if it were not compressed, so that its bytes are read as they lie there."""
    stored = copy.copy(info)
    stored.compress_type = zipfile.ZIP_STORED
    stored.file_size = info.compress_size
    del stored.CRC  # of what is inside; without one, none is compared
    return stored
