"""The settings in the URL of a log on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ...errors import InvalidInput

__all__ = ("Durability", "Settings", "parse")

Durability = Literal["full", "normal"]

_PARTITION: Final = 1 << 24
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}\Z")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "durability": ("full", "normal"),
    "chain": ("yes", "no"),
    "pooler": ("yes", "no"),
}


class Settings(NamedTuple):
    """Which log, and how.

    Attributes:
        dsn: the URL of the database, without the options that are ours.
        url: the URL of the log as it may be shown: without a password.
        schema: the schema that holds the log; each schema is a separate log.
        durability: ``full``: an acknowledged append survives a crash of the server; ``normal``: the
            last ones may be lost then, but never in part or out of order.
        chain: a new log keeps a hash chain per stream.
        pooler: connections go through a pooler that gives a connection to others after each
            transaction, as PgBouncer may: it neither prepares statements nor listens.
        partition: records in a partition of a new log.
    """

    dsn: str
    url: str
    schema: str
    durability: Durability
    chain: bool
    pooler: bool
    partition: int


def parse(url: str) -> Settings:
    """The settings in ``postgresql://user@host/database?schema=...``.

    Options that are not ours, such as ``sslmode``, are for the connection.

    Raises:
        InvalidInput: a name or value that cannot be.
    """
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    mine = {name: value for name, value in given if name in (*_CHOICES, "schema", "partition")}
    others = [(name, value) for name, value in given if name not in mine]
    for name, choices in _CHOICES.items():
        if mine.get(name, choices[0]) not in choices:
            raise InvalidInput(f"{name} must be {' or '.join(choices)}, not {mine[name]!r}")
    schema = mine.get("schema", "duolog")
    if not _NAME.match(schema):
        raise InvalidInput(
            f"a log's schema is named with lower-case letters, digits and _, not {schema!r}"
        )
    shown = parts.netloc.rpartition("@")
    user = shown[0].partition(":")[0]
    netloc = f"{user}@{shown[2]}" if user else shown[2]
    visible = {name: value for name, value in mine.items() if name == "schema"}
    return Settings(
        dsn=urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(others), "")),
        url=urlunsplit(("postgresql", netloc, parts.path, urlencode(visible), "")),
        schema=schema,
        durability="normal" if mine.get("durability") == "normal" else "full",
        chain=mine.get("chain") == "yes",
        pooler=mine.get("pooler") == "yes",
        partition=_size(mine.get("partition", str(_PARTITION))),
    )


def _size(text: str) -> int:
    if not text.isdecimal() or not 100 <= int(text) <= 1 << 40:
        raise InvalidInput(f"a partition must hold at least 100 records, got {text!r}")
    return int(text)
