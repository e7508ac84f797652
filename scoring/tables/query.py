"""What DuckDB computes of the tables: sessions beside what their rounds give, and counts of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from ...engine.errors import InvalidInput, MissingExtra
from ...engine.log.summary import FORGOTTEN
from ..metrics.effort import ELSEWHERE
from ..metrics.grouping import LABELS
from ..metrics.process import PROCESS_MEASURES
from ..metrics.survival import LEFT
from ..metrics.values import BROKEN_OFF, NO_ROUND
from ..trajectory.effort import MEASURES
from ..trajectory.points import NO_SCORE, NOT_EVALUATED
from .layout import View
from .values import At, Less, Stored, Value, reached_at

if TYPE_CHECKING:
    import numpy as np
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    from ..metrics.bootstrap_arrays import Floats
    from .folding import Array

__all__ = ("COUNTED", "EFFORTS", "FORKED", "Tables", "label_of", "listed", "quoted")


EFFORTS: Final = tuple(sorted(set(MEASURES) - ELSEWHERE))
"""The measures of effort that a report has."""

_STORED: Final = (
    *(f"process_{name}" for name in PROCESS_MEASURES),
    *(f"effort_{name}" for name in EFFORTS),
)
"""Columns that are averaged as they are. They are fetched once for all groups."""

_TOGETHER: Final = 12
"""Columns that are fetched at once, which takes twice their memory."""

_NO_ROUNDS: Final = """(
    SELECT 0::BIGINT AS key, 0 AS round, false AS closing, false AS updated, false AS stale,
        false AS pending, 0.0 AS utility, 0.0 AS value, 0::TINYINT AS rating WHERE false
)"""

_CELLS: Final = """
SELECT key, labels, state, baseline, faults, estimated, silent,
    agent_tokens, human_tokens, final, place, n, k, last_utility, best,
    nullif(update_at, 0) AS update_at, nullif(valued_at, 0) AS valued_at,
    {reached},
    coalesce(first_stale, false) AS first_stale,
    coalesce(update_stale, false) AS update_stale,
    coalesce(rated, false) AS rated,
    coalesce(result_only, false) AS result_only,
    stale_points, missing_ratings, pending_ratings, closing_rounds,
    coalesce(n, 0) AS all_rounds,
    coalesce(if(n IS NULL, 1, k), 0) AS last,
    evaluated AND if(n IS NULL, final IS NOT NULL, k > 0) AS walked,
    CASE
        WHEN NOT evaluated THEN {not_evaluated}
        WHEN n IS NULL THEN if(final IS NULL, {no_round}, NULL)
        WHEN k = 0 THEN {no_round}
        WHEN unscored THEN {no_score}
    END AS missing,
    CASE
        WHEN final IS NOT NULL THEN final
        WHEN final_missing OR NOT evaluated OR (baseline AND state IN ({broken})) THEN NULL
        WHEN k > 0 AND NOT unscored THEN last_utility
    END AS performance,
    state IN ({left}) AS left_early
FROM all_sessions LEFT JOIN folded USING (key)
WHERE {counted}
"""

FORKED: Final = """coalesce(forked_from IN (
    SELECT session FROM all_sessions WHERE session IN (
        SELECT forked_from FROM all_sessions WHERE forked_from IS NOT NULL
    )
), false)"""
"""Whether a session is a fork whose origin is there."""

COUNTED: Final = f"state <> '{FORGOTTEN}' AND NOT {FORKED}"
"""Which of all sessions are cells."""


def quoted(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """Texts as SQL lists them."""
    return ", ".join(quoted(value) for value in sorted(values))


def label_of(name: str) -> str:
    """The column of a label, which is null where a session has none."""
    return f"label_{name.encode().hex()}"  # names of columns do not tell cases apart


@final
class Tables:
    """The tables of a view, open in DuckDB, with a table ``cells`` of the sessions that count.

    Sessions that were forgotten do not, nor do forks whose origins are there.

    Args:
        directory: of the tables.
        view: which of them.
        taus: the tolerances; each has a column of k_τ.
        formal: whether k_τ is that of the formal convention.

    Attributes:
        labels: the labels that sessions have.
        rounds: the rounds of all sessions; their places are a column.

    Raises:
        MissingExtra: DuckDB is not installed.
        InvalidInput: a file cannot be read.
    """

    def __init__(self, directory: Path, view: View, taus: Sequence[int], *, formal: bool) -> None:
        try:
            import duckdb
            import numpy as np

            from .folding import ROUNDS, FoldedRounds
        except ModuleNotFoundError as error:
            raise MissingExtra("analytics", "a report on tables") from error
        self._connection: DuckDBPyConnection = duckdb.connect()
        self._failed = duckdb.Error
        for name, table in (("all_sessions", "sessions"), ("rounds", "rounds")):
            files = [quoted(str(directory / part.path)) for part in view.table(table)]
            source = f"read_parquet([{', '.join(files)}], hive_partitioning = false)"
            self.do(f"CREATE VIEW {name} AS SELECT * FROM {source if files else _NO_ROUNDS}")
        self.rounds = FoldedRounds(self.columns(ROUNDS))
        cursor = self._connection.cursor()
        cursor.register("folded", self.rounds.columns(taus, formal=formal))
        select = _CELLS.format(
            not_evaluated=quoted(NOT_EVALUATED),
            no_round=quoted(NO_ROUND),
            no_score=quoted(NO_SCORE),
            broken=listed(BROKEN_OFF),
            left=listed(LEFT),
            counted=COUNTED,
            reached=", ".join(f"coalesce({at}, 0) AS {at}" for at in map(reached_at, taus)),
        )
        names = self.rows("SELECT DISTINCT unnest(map_keys(labels)) FROM all_sessions")
        labels = sorted({*LABELS, *(name for (name,) in names)})
        named = ", ".join(f"labels[{quoted(name)}] AS {label_of(name)}" for name in labels)
        self.do(f"CREATE TABLE cells AS SELECT * EXCLUDE (labels), {named} FROM ({select})", cursor)
        cursor.close()
        counts = ", ".join(f"count({label_of(name)})" for name in labels)
        (found,) = self.rows(f"SELECT {counts} FROM cells")
        self.labels = frozenset(name for name, count in zip(labels, found, strict=True) if count)
        self._keys = self.columns("SELECT key FROM all_sessions")["key"]
        self._by_key = np.argsort(self._keys)
        self._stored = {
            name: _narrow(column)
            for name, column in self._fetched({name: name for name in _STORED}, "all_sessions")
        }

    def do(self, statement: str, cursor: DuckDBPyConnection | None = None) -> None:
        """Runs a statement.

        Args:
            statement: SQL.
            cursor: what knows the names in it; None where all do.

        Raises:
            InvalidInput: a file is damaged, or is not there.
        """
        with self._reading():
            (cursor or self._connection).execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Several threads may ask.

        Raises:
            InvalidInput: as ``do``.
        """
        with self._reading():
            return self._connection.cursor().execute(query).fetchall()

    def columns(self, query: str) -> dict[str, Array]:
        """The columns of a query that gives no null. Several threads may ask.

        Raises:
            InvalidInput: as ``do``.
        """
        import numpy as np

        with self._reading():
            found = self._connection.cursor().execute(query).fetchnumpy()
        return {name: np.ma.getdata(column) for name, column in found.items()}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except self._failed as error:
            raise InvalidInput(
                f"the tables cannot be read: {str(error).splitlines()[0]}"
            ) from error

    def number(self, query: str) -> int:
        """The only value of a query that counts something."""
        return int(self.rows(query)[0][0])

    def arrays(self, columns: Mapping[str, Value], where: str) -> dict[str, Floats]:
        """Columns of ``cells``; not a number where a value is missing.

        Args:
            columns: what each holds, by its name.
            where: which sessions.
        """
        import numpy as np

        of = self.columns(
            "SELECT key, coalesce(place, -1) AS place, coalesce(final, 'NaN') AS final "
            f"FROM cells WHERE {where}"
        )
        rows = self._by_key[np.searchsorted(self._keys, of["key"], sorter=self._by_key)]
        queried = {n: value for n, value in columns.items() if isinstance(value, str | At)}
        fetched = dict(self._fetched(queried, f"cells WHERE {where}"))
        found: dict[str, Floats] = {}
        for name, value in columns.items():
            match value:
                case Stored():
                    found[name] = self._stored[value.name][rows].astype(np.float64)
                case Less():
                    found[name] = found[value.whole] - found[value.part]
                case At():
                    number = fetched.pop(name)
                    found[name] = self.rounds.utility_at(of["place"], number, of["final"])
                case _:
                    found[name] = fetched.pop(name)
        return found

    def _fetched(self, columns: Mapping[str, str | At], source: str) -> Iterator[tuple[str, Array]]:
        """Columns of a table: not a number where a value is missing, and 0 where the number of a round is."""
        names = list(columns)
        for begin in range(0, len(names), _TOGETHER):
            some = names[begin : begin + _TOGETHER]
            selected = ", ".join(
                f"{_number(columns[name])} AS c{at}" for at, name in enumerate(some)
            )
            rows = self.columns(f"SELECT {selected} FROM {source}")
            for at, name in enumerate(some):
                yield name, rows.pop(f"c{at}")

    def close(self) -> None:
        """Lets go of it."""
        self._connection.close()


def _number(value: str | At) -> str:
    """A column of numbers as SQL without null."""
    if isinstance(value, At):
        return f"coalesce(({value.number})::INTEGER, 0)"
    return f"coalesce(({value})::DOUBLE, 'NaN')"


def _narrow(column: Floats) -> Floats | NDArray[np.float32]:
    """A column in half the memory, if nothing is lost by it."""
    import numpy as np

    narrow = column.astype(np.float32)
    return narrow if np.array_equal(narrow, column, equal_nan=True) else column
