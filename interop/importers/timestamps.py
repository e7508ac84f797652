"""Times as other programs write them: with a zone, without one, or as numbers."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...engine.errors import InvalidInput

__all__ = ("seconds_of", "zone_name", "zone_named")

_LOCAL = "local"
_LATEST = 253_402_300_799  # the last second of the year 9999


def zone_named(name: str) -> tzinfo | None:
    """The zone of this name: ``UTC``, ``Europe/Berlin``, or ``local`` for this machine's (None).

    Raises:
        InvalidInput: there is no such zone.
    """
    if name.lower() == _LOCAL:
        return None
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(
            f"unknown time zone {name!r}; write one such as Europe/Berlin, UTC or local"
        ) from error


def zone_name(zone: tzinfo | None) -> str:
    """The name of a zone."""
    return _LOCAL if zone is None else str(zone)


def seconds_of(stamp: object, zone: tzinfo | None) -> float | None:
    """Seconds since the epoch of a time stamp; None if it is not one.

    A number is taken for such seconds; a number beyond the year 9999, such as milliseconds, is not
    a time. A text is read as ISO 8601; without a zone it is local time in ``zone``. If an hour
    occurs twice because clocks are set back, the first one is used.

    Args:
        stamp: the value in the source.
        zone: of local times; None for this machine's.
    """
    if not isinstance(stamp, str):
        if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
            return float(stamp) if 0 <= stamp <= _LATEST else None
        return None
    try:
        moment = datetime.fromisoformat(stamp.strip())
        if moment.tzinfo is None and zone is not None:
            moment = moment.replace(tzinfo=zone)
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
