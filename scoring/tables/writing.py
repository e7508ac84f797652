"""Which files of a view are written anew when sessions are added, changed or erased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, final

from ...engine.records import Record
from .layout import RECORDS, Part, View, folder_of
from .rows import (
    Scored,
    Table,
    keys_of,
    record_table,
    remaining_rows,
    round_table,
    session_table,
    write_part,
)

__all__ = ("Rewriting",)

_LARGE: Final = 1 << 18
"""Rows of a file to which no more are added."""


@final
class Rewriting:
    """Writes the next files of a directory.

    A file is never changed. Rows of a session that was written before are taken out by writing its
    file anew without them; and a small file is written anew with the rows that are added, so that
    many small batches leave few files.

    Args:
        directory: of the tables.
        number: of the last file that was written.

    Attributes:
        number: of the last file that was written.
    """

    def __init__(self, directory: Path, number: int) -> None:
        self._directory = directory
        self.number = number

    def parts(
        self, view: View, sessions: Sequence[Scored], records: Sequence[tuple[int, Record]]
    ) -> tuple[Part, ...]:
        """The files of a view once these sessions are in it.

        Args:
            view: as it is.
            sessions: those that are added, or written anew.
            records: the records of these sessions, by key.
        """
        added = _added(view, sessions, records)
        kept = {part.path: part for part in view.parts}
        for part in self._holding(view, {one.key for one in sessions}):
            rest = remaining_rows(self._directory, part, [one.key for one in sessions])
            added.setdefault(_folder(part), []).insert(0, rest)
            del kept[part.path]
        for folder, tables in added.items():
            rows = sum(table.num_rows for table in tables)
            small = [one for one in kept.values() if _folder(one) == folder and one.rows < _LARGE]
            for part in sorted(small, key=lambda one: one.rows):
                if part.rows > 2 * rows:
                    break
                tables.insert(0, remaining_rows(self._directory, part, ()))
                rows += part.rows
                del kept[part.path]
        return (*kept.values(), *self._written(added))

    def _holding(self, view: View, keys: set[int]) -> Iterable[Part]:
        """The files with rows of some of these sessions."""
        if not keys:
            return []
        low, high = min(keys), max(keys)
        near = [part for part in view.parts if part.first <= high and low <= part.last]
        return [part for part in near if not keys.isdisjoint(keys_of(self._directory, part))]

    def _written(self, added: dict[str, list[Table]]) -> list[Part]:
        parts = []
        for folder, tables in added.items():
            self.number += 1
            part = write_part(self._directory, folder, self.number, tables)
            if part is not None:
                parts.append(part)
        return parts


def _folder(part: Part) -> str:
    return part.path.rpartition("/")[0]


def _added(
    view: View, sessions: Sequence[Scored], records: Sequence[tuple[int, Record]]
) -> dict[str, list[Table]]:
    """New rows by folder."""
    if not sessions:
        return {}
    if view.same_as(RECORDS):
        return {folder_of(view, "records"): [record_table(records)]}
    added = {folder_of(view, "sessions"): [session_table(sessions)]}
    for scorer in dict.fromkeys(one.scorer for one in sessions):
        mine = [one for one in sessions if one.scorer == scorer]
        added[folder_of(view, "rounds", scorer)] = [round_table(mine)]
    return added
