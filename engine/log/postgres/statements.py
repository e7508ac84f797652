"""The statements that a commit on PostgreSQL consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from .reader import EVENT
from .settings import Settings

__all__ = ("COLUMNS", "Statements")

COLUMNS: Final = tuple(name.strip() for name in f"{EVENT}, crc".split(","))
"""The columns of the table of records, in the order in which a commit writes them."""

_STATE: Final = (
    "key, session, task, instance, labels, origin, state, events, version, rounds, acted, utility, "
    "evaluated, opened, last, position, salt"
)


@final
class Statements:
    """The statements over one log.

    Args:
        settings: which log.
    """

    def __init__(self, settings: Settings) -> None:
        s = self._schema = settings.schema
        self._repeated = _Repeated(s, prepared=not settings.pooler)
        self.prepare = self._repeated.prepare()
        self.begin = "BEGIN"
        if settings.durability == "normal":
            self.begin += "; SET LOCAL synchronous_commit = off"
        self.lock = (
            "SELECT position, epoch, layout, chained, partitioned, pg_current_xact_id()::text "
            f"FROM {s}.log FOR UPDATE"
        )
        self.states = f"SELECT {_STATE} FROM {s}.summaries WHERE session = ANY($1::text[])"
        self.streams = (
            "SELECT t.session, t.stream, t.key, (SELECT version FROM "
            f"{s}.records WHERE stream = t.key ORDER BY version DESC LIMIT 1) FROM {s}.streams t "
            "WHERE t.session = ANY($1::bigint[])"
        )
        self.hashes = (
            "SELECT w.stream, c.hash FROM unnest($1::bigint[], $2::bigint[]) AS w (stream, version) "
            f"JOIN {s}.records r USING (stream, version) JOIN {s}.chain c ON c.position = r.position"
        )
        events = ", ".join(f"r.{name.strip()}" for name in EVENT.split(","))
        self.by_ids = (
            f"SELECT {events} FROM unnest($1::bigint[], $2::text[]) AS wanted (session, id) "
            f"JOIN {s}.ids i USING (session, id) JOIN {s}.records r ON r.position = i.position"
        )
        self.consumers = (
            "SELECT c.consumer, c.version, c.position FROM unnest($1::text[], $2::text[]) "
            f"AS wanted (consumer, version) JOIN {s}.consumers c USING (consumer, version)"
        )
        self.opened = f"""
            INSERT INTO {s}.summaries ({_STATE})
            SELECT * FROM unnest(
                $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::double precision[],
                $13::boolean[], $14::double precision[], $15::double precision[], $16::bigint[],
                $17::bytea[]
            )
            ON CONFLICT (key) DO UPDATE SET
                task = excluded.task, instance = excluded.instance, labels = excluded.labels,
                origin = excluded.origin, state = excluded.state, events = excluded.events,
                version = excluded.version, rounds = excluded.rounds, acted = excluded.acted,
                utility = excluded.utility, evaluated = excluded.evaluated,
                opened = excluded.opened, last = excluded.last, position = excluded.position"""
        self.begun = (
            f"INSERT INTO {s}.streams (key, session, stream) "
            "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])"
        )
        self.ids = (
            f"INSERT INTO {s}.ids (session, id, position) "
            "SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])"
        )
        self.advance = (
            f"INSERT INTO {s}.consumers (consumer, version, position) "
            "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) "
            "ON CONFLICT (consumer, version) DO UPDATE SET position = excluded.position"
        )
        self.chain = (
            f"INSERT INTO {s}.chain (position, mac, hash) "
            "SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])"
        )
        self.partition = f"SELECT {s}.add_partition()"
        # Waits until who attached the last partition has let go of it, and so has told everybody.
        self.attached = (
            f"SELECT pg_relation_size(to_regclass(format('{s}.records_%s', partitioned - partition))) "
            f"FROM {s}.log"
        )
        self.look = f"SET LOCAL lock_timeout = '1s'; SELECT FROM {s}.log FOR UPDATE"
        self.status = "SELECT pg_xact_status($1::text::xid8)"
        self.record = f"SELECT crc FROM {s}.records WHERE position = $1"

    def commit_at(self, position: int, progress: Sequence[Sequence[float]]) -> str:
        """Ends a transaction in which records were copied.

        Args:
            position: of the last of them.
            progress: key, events, version, rounds, acted, last and position of sessions in which no
                more than these has changed, one sequence for each.
        """
        steps = [self._repeated.run("move", position), f'NOTIFY "{self._schema}"', "COMMIT"]
        if progress:
            columns = [f"'{{{msgspec.json.encode(column).decode()[1:-1]}}}'" for column in progress]
            steps.insert(0, self._repeated.run("summarize", *columns))
        return "; ".join(steps)

    def begin_if(self, position: int, epoch: int) -> str:
        """Begins a transaction, and takes the lock if the log is as it is known and nobody has it.

        Answered with ``SELECT 1``, and else with ``SELECT 0``.
        """
        return f"{self.begin}; {self._repeated.run('lock_if', position, epoch)}"

    def begin_at(self, position: int, epoch: int, upto: int) -> str:
        """Begins a transaction and takes the lock, if the log is as it is known; moves its position.

        Answered with ``UPDATE 1``, and with ``UPDATE 0`` where others have written since.
        """
        return f"{self.begin}; {self._repeated.run('move_if', position, epoch, upto)}"


class _Repeated:
    """What each group has the server do: planned once for a connection, if it stays ours.

    To read and plan them anew for each group of 100 took a fifth of the server's time.

    Args:
        schema: of the log.
        prepared: whether the connection keeps what is prepared on it, as behind a pooler it does not.
    """

    def __init__(self, schema: str, *, prepared: bool) -> None:
        self._prepared = prepared
        self._statements: Mapping[str, tuple[tuple[str, ...], str]] = {
            "lock_if": (
                ("bigint", "bigint"),
                f"""
                SELECT FROM {schema}.log WHERE position = {{}} AND epoch = {{}}
                FOR UPDATE SKIP LOCKED""",
            ),
            "move_if": (
                ("bigint", "bigint", "bigint"),
                f"UPDATE {schema}.log SET position = {{2}} WHERE position = {{0}} AND epoch = {{1}}",
            ),
            "move": (
                ("bigint",),
                f"UPDATE {schema}.log SET position = {{0}} WHERE position <> {{0}}",
            ),
            "summarize": (
                (*("bigint[]",) * 5, "double precision[]", "bigint[]"),
                f"""
                UPDATE {schema}.summaries AS o SET
                    events = n.events, version = n.version, rounds = n.rounds, acted = n.acted,
                    last = n.last, position = n.position
                FROM unnest({{}}, {{}}, {{}}, {{}}, {{}}, {{}}, {{}})
                    AS n (key, events, version, rounds, acted, last, position)
                WHERE o.key = n.key""",
            ),
        }

    def prepare(self) -> str:
        """Prepares all of them on a new connection; empty where they are not to be."""
        if not self._prepared:
            return ""
        return "; ".join(
            f"PREPARE {name} ({', '.join(types)}) AS "
            + text.format(*(f"${number}" for number in range(1, len(types) + 1)))
            for name, (types, text) in self._statements.items()
        )

    def run(self, name: str, *values: object) -> str:
        """The statement that does one of them, with values as SQL has them."""
        if self._prepared:
            return f"EXECUTE {name} ({', '.join(map(str, values))})"
        types, text = self._statements[name]
        return text.format(*(f"{value}::{of}" for value, of in zip(values, types, strict=True)))
