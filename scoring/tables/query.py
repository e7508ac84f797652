"""What DuckDB computes of the tables: per session, and counts of sessions.

``_FOLDED`` has a row per session with what its rounds give: their utilities in a list beside the list of
their numbers, in any order, and their ratings in order as a text of one character each: 1 to 5, 0 for
a missing one, 9 for one that is pending. k_τ is where τ unsatisfactory ones stand in a row in that text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from ...engine.errors import InvalidInput, MissingExtra
from ...engine.log.summary import FORGOTTEN
from ..metrics.grouping import LABELS
from ..metrics.survival import LEFT
from ..metrics.values import BROKEN_OFF, NO_ROUND
from ..trajectory.points import NO_SCORE, NOT_EVALUATED
from .layout import View
from .values import bad_text, first_run, reached_at

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ..metrics.bootstrap_arrays import Floats

__all__ = ("FORKED", "Tables", "label_of", "listed", "quoted")


_FOLDED: Final = """
SELECT key,
    count(*) AS n,
    count(*) FILTER (NOT closing) AS k,
    list(round) FILTER (NOT closing) AS numbers,
    list(coalesce(utility, 0.0)) FILTER (NOT closing) AS utilities,
    max(coalesce(utility, 0.0)) FILTER (NOT closing) AS best,
    min(round) FILTER (updated AND NOT closing) AS update_at,
    arg_min(stale, round) FILTER (updated AND NOT closing) AS update_stale,
    arg_max(stale, round) FILTER (NOT closing) AS last_stale,
    min(round) FILTER (value IS NOT NULL) AS valued_at,
    count(value) FILTER (NOT closing) AS valued_rounds,
    arg_max(value IS NOT NULL, round) FILTER (NOT closing) AS last_valued,
    bool_or(utility IS NULL AND round = 1) AS unscored,
    count(rating) FILTER (NOT closing) > 0 AS rated,
    count(rating) > 0 AS rated_anywhere,
    count(*) FILTER (stale) AS stale_points,
    count(*) FILTER (rating IS NULL AND NOT pending) AS missing_ratings,
    count(*) FILTER (pending) AS pending_ratings,
    count(*) FILTER (closing) AS closing_rounds,
    array_to_string(
        list_transform(
            list_sort(list(10 * round::BIGINT + if(pending, 9, coalesce(rating, 0)))),
            lambda code: code % 10
        ),
        ''
    ) AS ratings
FROM rounds GROUP BY key
"""

_NO_ROUNDS: Final = """(
    SELECT 0::BIGINT AS key, 0 AS round, false AS closing, false AS updated, false AS stale,
        false AS pending, 0.0 AS utility, 0.0 AS value, 0::TINYINT AS rating WHERE false
)"""

_CELLS: Final = """
SELECT key, labels, state, baseline, judges, faults, estimated, silent,
    agent_tokens, human_tokens, final, n, k, numbers, utilities, best, ratings,
    update_at, valued_at,
    coalesce(update_stale, last_stale, false) AS first_stale,
    coalesce(update_stale, false) AS update_stale,
    coalesce(rated, false) AS rated,
    coalesce(rated_anywhere, false) AS rated_anywhere,
    stale_points, missing_ratings, pending_ratings, closing_rounds,
    COLUMNS('process_.*|effort_.*'),
    coalesce(n, 0) AS all_rounds,
    coalesce(if(n IS NULL, 1, k), 0) AS last,
    evaluated AND if(n IS NULL, final IS NOT NULL, k > 0) AS walked,
    CASE
        WHEN NOT evaluated THEN {not_evaluated}
        WHEN n IS NULL THEN if(final IS NULL, {no_round}, NULL)
        WHEN k = 0 THEN {no_round}
        WHEN unscored THEN {no_score}
    END AS missing,
    coalesce(k > 1 AND last_valued AND valued_rounds = 1 AND update_at IS NULL, false)
        AS result_only,
    CASE
        WHEN final IS NOT NULL THEN final
        WHEN final_missing OR NOT evaluated OR (baseline AND state IN ({broken})) THEN NULL
        WHEN k > 0 AND NOT unscored THEN utilities[list_position(numbers, k)]
    END AS performance,
    state IN ({left}) AS left_early
FROM all_sessions LEFT JOIN folded USING (key)
WHERE state <> {forgotten} AND NOT {forked}
"""

FORKED: Final = "coalesce(forked_from IN (SELECT session FROM all_sessions), false)"
"""Whether a session is a fork whose origin is there."""


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

    Attributes:
        labels: the labels that sessions have.

    Raises:
        MissingExtra: DuckDB is not installed.
        InvalidInput: a file cannot be read.
    """

    def __init__(self, directory: Path, view: View, taus: Sequence[int]) -> None:
        try:
            import duckdb
        except ModuleNotFoundError as error:
            raise MissingExtra("analytics", "a report on tables") from error
        self._connection: DuckDBPyConnection = duckdb.connect()
        self._failed = duckdb.Error
        for name, table in (("all_sessions", "sessions"), ("rounds", "rounds")):
            files = [quoted(str(directory / part.path)) for part in view.table(table)]
            source = f"read_parquet([{', '.join(files)}], hive_partitioning = false)"
            self.do(f"CREATE VIEW {name} AS SELECT * FROM {source if files else _NO_ROUNDS}")
        self.do(f"CREATE TEMP VIEW folded AS {_FOLDED}")
        select = _CELLS.format(
            not_evaluated=quoted(NOT_EVALUATED),
            no_round=quoted(NO_ROUND),
            no_score=quoted(NO_SCORE),
            broken=listed(BROKEN_OFF),
            left=listed(LEFT),
            forgotten=quoted(FORGOTTEN),
            forked=FORKED,
        )
        reached = ", ".join(f"{first_run('bad', tau)} AS {reached_at(tau)}" for tau in taus)
        marked = f"SELECT *, {bad_text()} AS bad FROM ({select})"
        names = self.rows("SELECT DISTINCT unnest(map_keys(labels)) FROM all_sessions")
        labels = sorted({*LABELS, *(name for (name,) in names)})
        named = ", ".join(f"labels[{quoted(name)}] AS {label_of(name)}" for name in labels)
        self.do(
            f"CREATE TEMP TABLE cells AS SELECT * EXCLUDE (bad, labels), {reached}, {named} "
            f"FROM ({marked})"
        )
        counts = ", ".join(f"count({label_of(name)})" for name in labels)
        (found,) = self.rows(f"SELECT {counts} FROM cells")
        self.labels = frozenset(name for name, count in zip(labels, found, strict=True) if count)

    def do(self, statement: str) -> DuckDBPyConnection:
        """Runs a statement.

        Raises:
            InvalidInput: a file is damaged, or is not there.
        """
        try:
            return self._connection.execute(statement)
        except self._failed as error:
            raise InvalidInput(
                f"the tables cannot be read: {str(error).splitlines()[0]}"
            ) from error

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.do(query).fetchall()

    def number(self, query: str) -> int:
        """The only value of a query that counts something."""
        return int(self.rows(query)[0][0])

    def arrays(self, columns: Mapping[str, str], where: str) -> dict[str, Floats]:
        """Columns of ``cells``; not a number where a value is missing.

        Args:
            columns: SQL of each, by its name.
            where: which sessions.
        """
        import numpy as np

        names = list(columns)
        listed = ", ".join(
            f"coalesce(({columns[name]})::DOUBLE, 'NaN') AS c{at}" for at, name in enumerate(names)
        )
        found = self.do(f"SELECT {listed} FROM cells WHERE {where}").fetchnumpy()
        return {name: np.ma.getdata(found[f"c{at}"]) for at, name in enumerate(names)}

    def close(self) -> None:
        """Lets go of it."""
        self._connection.close()
