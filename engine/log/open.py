"""Where events are kept: a URL picks the store."""

from __future__ import annotations

from ..errors import InvalidInput
from .append import Redact
from .consumer import Consumer, run_consumer
from .contract import Store
from .follower import Output
from .jsonl_export import export_jsonl
from .jsonl_import import Imported, LineProblem, import_jsonl
from .memory import MemoryLog
from .sqlite.file import parse
from .sqlite.log import SqliteLog

__all__ = (
    "Consumer",
    "Imported",
    "LineProblem",
    "MemoryLog",
    "Output",
    "Redact",
    "SqliteLog",
    "export_jsonl",
    "import_jsonl",
    "open_log",
    "run_consumer",
)


def open_log(url: str, *, create: bool = True, redact: Redact | None = None) -> Store:
    """A log at a URL, not open yet: enter it with ``async with``.

    ``memory://`` is a log that lives as long as it is open. ``sqlite:///path`` is one in a file
    (``sqlite:////path`` for an absolute path; a path alone will do as well), with the options
    ``durability=full``, the default: an acknowledged append survives a loss of power;
    ``durability=normal``: it survives the end of the process; ``chain=yes``: a new log keeps a hash
    chain per stream, which ``verify`` checks. Enter and leave a log in the same task.

    Args:
        url: where the log is.
        create: make the log where there is none; else that is an error (when it is entered).
        redact: takes out of each draft what must not be written.

    Raises:
        InvalidInput: a URL that names no store.
    """
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite" or not separator:
        return SqliteLog(parse(url), create=create, redact=redact)
    if separator and scheme == "memory":
        return MemoryLog(redact=redact)
    raise InvalidInput(f"no store for {url!r}: a log's URL is memory:// or sqlite:///path")
