"""Pseudonyms of participants, and the table of the recruiter's ids, apart from the data.

A pseudonym is a keyed digest (HMAC-SHA256) of the recruiter's id. Only the owner
of the key and of the table can read these files, and no export holds them.
"""

from __future__ import annotations

import csv
import hmac
import io
import os
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, final

import anyio
import anyio.to_thread

from ...engine.errors import InvalidInput

__all__ = ("Places", "Recruits", "places_of")

_KEY: Final = 32  # bytes
_DIGITS: Final = 16  # of a pseudonym
_LONGEST: Final = 200  # characters of an id


@final
class Places(NamedTuple):
    """The files of a study, in the directory of its plan.

    Attributes:
        sessions: the log of what participants did.
        people: the log of consent, assignment, answers and withdrawal.
        ids: the table of recruiters' ids.
        key: the key of the pseudonyms.
    """

    sessions: Path
    people: Path
    ids: Path
    key: Path


def places_of(plan: Path) -> Places:
    """The files of the study that is planned in a file."""
    ends = (".db", ".people.db", ".ids.csv", ".key")
    return Places(*(plan.with_name(f"{plan.stem}{end}") for end in ends))


@final
class Recruits:
    """Gives pseudonyms, and keeps the table of ids.

    Args:
        key: the key of the pseudonyms.
        table: the file of the ids.
        parameters: which ids there are.
    """

    def __init__(self, key: bytes, table: Path, parameters: Sequence[str]) -> None:
        self._key = key
        self._table = table
        self._parameters = tuple(parameters)
        self._writing = anyio.Lock()

    @classmethod
    def at(cls, places: Places, parameters: Sequence[str]) -> Recruits:
        """Those of a study; makes its key if there is none.

        Raises:
            InvalidInput: the key cannot be read or written.
        """
        try:
            if not places.key.exists():
                _write_private(places.key, secrets.token_bytes(_KEY))
            key = places.key.read_bytes()
        except OSError as error:
            raise InvalidInput(f"cannot use {places.key}: {error.strerror or error}") from error
        if len(key) < _KEY:
            raise InvalidInput(f"{places.key} is not the key of a study: it is too short")
        return cls(key, places.ids, parameters)

    def pseudonym(self, ident: str) -> str:
        """The pseudonym for an id."""
        return f"p-{self._digest('participant', ident[:_LONGEST])}"

    def secret(self, purpose: str) -> str:
        """A secret for a purpose, which stays the same when the server starts again."""
        return self._digest(f"secret {purpose}", "", digits=48)

    def signed(self, pseudonym: str) -> str:
        """The contents of a participant's cookie."""
        return f"{pseudonym}.{self._digest('cookie', pseudonym, digits=32)}"

    def verified(self, cookie: str) -> str | None:
        """Whose cookie it is; None for nobody's."""
        pseudonym, _, _ = cookie.partition(".")
        known = self.signed(pseudonym)
        return pseudonym if hmac.compare_digest(known.encode(), cookie.encode()) else None

    async def keep(self, pseudonym: str, given: Mapping[str, str]) -> None:
        """Keeps the ids of a participant, once."""
        ids = {name: given[name][:_LONGEST] for name in self._parameters if given.get(name)}
        if ids:
            async with self._writing:
                await anyio.to_thread.run_sync(self._keep, pseudonym, ids)

    async def remove(self, pseudonym: str) -> None:
        """Removes the ids of a participant who withdrew."""
        async with self._writing:
            await anyio.to_thread.run_sync(self._remove, pseudonym)

    def _keep(self, pseudonym: str, ids: Mapping[str, str]) -> None:
        rows = self._rows()
        if all(row["participant"] != pseudonym for row in rows):
            self._write([*rows, {"participant": pseudonym, **ids}])

    def _remove(self, pseudonym: str) -> None:
        rows = self._rows()
        kept = [row for row in rows if row["participant"] != pseudonym]
        if len(kept) < len(rows):
            self._write(kept)

    def _rows(self) -> list[dict[str, str]]:
        if not self._table.exists():
            return []
        with self._table.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def _write(self, rows: Sequence[Mapping[str, str]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(
            text, ["participant", *self._parameters], extrasaction="ignore", restval=""
        )
        writer.writeheader()
        writer.writerows(rows)
        _write_private(self._table, text.getvalue().encode())

    def _digest(self, purpose: str, text: str, *, digits: int = _DIGITS) -> str:
        return hmac.new(self._key, f"{purpose}\n{text}".encode(), sha256).hexdigest()[:digits]


def _write_private(path: Path, data: bytes) -> None:
    """Writes a file that only its owner can read, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
