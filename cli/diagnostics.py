"""The diagnostic log of the command line: ``--log-level`` and ``--log-format``, before or after a command.

It goes to standard error, never to standard output. Without these options it is quiet, since
commands print their own messages. (``serve`` and ``acp`` run unattended, so they log warnings.)
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ..engine.errors import InvalidInput

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

__all__ = (
    "FORMATS",
    "LEVELS",
    "LogOptions",
    "current_level",
    "diagnostics",
    "muted",
    "take_log_options",
)

LEVELS: Final = ("debug", "info", "warning", "error", "off")
"""What ``--log-level`` takes."""

FORMATS: Final = ("text", "json")
"""What ``--log-format`` takes."""

_ROOT = "duolog"
_OPTIONS = {"--log-level": LEVELS, "--log-format": FORMATS}
_UNATTENDED = ("serve", "acp")


class LogOptions(NamedTuple):
    """The log level and format; None if not given."""

    level: str | None = None
    format: str | None = None


def take_log_options(arguments: Sequence[str]) -> tuple[list[str], LogOptions]:
    """Removes the log options from a command line, at any position.

    Returns:
        The other arguments, and the options.

    Raises:
        InvalidInput: an option lacks a value, or has an unknown one.
    """
    rest: list[str] = []
    found: dict[str, str] = {}
    given = iter(arguments)
    for argument in given:
        if argument == "--":
            rest += [argument, *given]
            break
        name, equals, value = argument.partition("=")
        choices = _OPTIONS.get(name)
        if choices is None:
            rest.append(argument)
            continue
        value = value if equals else next(given, "")
        if value not in choices:
            from ..engine.text import one_of  # imported only on an error

            got = f"got {value!r}" if value else "and it has no value"
            raise InvalidInput(f"{name} expects {one_of(choices)}, {got}")
        found[name] = value
    return rest, LogOptions(found.get("--log-level"), found.get("--log-format"))


@contextmanager
def diagnostics(options: LogOptions, command: str | None) -> Iterator[None]:
    """Logs as the options say, until the end of the block.

    Args:
        options: what was given.
        command: which command runs; None for none.
    """
    level = options.level or ("info" if options.format else None)
    if level is None:
        level = "warning" if command in _UNATTENDED else "off"
    if level == "off":
        with _handler(logging.NullHandler(), None):
            yield
        return
    import structlog

    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=_processors(options.format or "text"),
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    try:
        with _handler(logging.StreamHandler(sys.stderr), level):
            yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)


def current_level() -> str:
    """The level that this program logs at, for another that it starts."""
    logger = logging.getLogger(_ROOT)
    logs = any(isinstance(one, logging.StreamHandler) for one in logger.handlers)
    return logging.getLevelName(logger.level).lower() if logs else "off"


@contextmanager
def muted() -> Iterator[None]:
    """Keeps the log off a terminal with a screen drawn on it; a log to a file continues."""
    logger = logging.getLogger(_ROOT)
    shown = [handler for handler in logger.handlers if _is_terminal(handler)]
    for handler in shown:
        logger.removeHandler(handler)
    with _handler(logging.NullHandler(), None):
        try:
            yield
        finally:
            for handler in shown:
                logger.addHandler(handler)


@contextmanager
def _handler(handler: logging.Handler, level: str | None) -> Iterator[None]:
    logger = logging.getLogger(_ROOT)
    before = logger.level
    if level is not None:
        logger.setLevel(level.upper())
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _processors(form: str) -> list[Processor]:
    import structlog

    shared: list[Processor] = [
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _without_secrets,
    ]
    if form == "json":
        return [*shared, structlog.processors.JSONRenderer(default=str, ensure_ascii=False)]
    order = ("timestamp", "level", "logger", "event")
    return [*shared, structlog.processors.LogfmtRenderer(key_order=order)]


def _without_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    from ..engine.redaction import redact

    return {name: redact(v) if isinstance(v, str) else v for name, v in event.items()}


def _is_terminal(handler: logging.Handler) -> bool:
    stream = getattr(handler, "stream", None)
    try:
        return stream is not None and os.isatty(stream.fileno())
    except (OSError, ValueError):  # it lacks a descriptor, or is closed
        return False
