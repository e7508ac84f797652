"""A direct connection to the schema of a log on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from duolog.engine.log.postgres.settings import parse

__all__ = ("shell",)


@asynccontextmanager
async def shell(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A direct connection to the schema of a log."""
    settings = parse(url)
    connection = await asyncpg.connect(settings.dsn)
    try:
        await connection.execute(f"SET search_path = {settings.schema}")
        yield connection
    finally:
        await connection.close()
