"""How what a log holds is shown, on any screen: times, numbers, texts without control characters."""

from __future__ import annotations

import re
from datetime import datetime

__all__ = (
    "clean",
    "day_or_hour",
    "dollars",
    "duration",
    "has_times",
    "inert",
    "is_virtual",
    "lasted",
    "moment",
    "number",
    "one_line",
    "shorten",
    "with_reason",
)

# Control characters, and those that reorder text, are shown as symbols instead of being sent.
_HARMLESS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_HARMLESS |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_HARMLESS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
_HARMLESS |= dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_NAME = 200  # characters of a name
_VIRTUAL_BEFORE = 365 * 86400.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def clean(text: str) -> str:
    """A text from a log with control characters made visible and lone surrogates replaced."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_HARMLESS)


def shorten(text: str, width: int) -> str:
    """A text on one line of at most ``width`` characters, with an ellipsis if it was shortened."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def inert(text: str) -> str:
    """A text for a file of Markdown, in which it neither loads anything, nor links, nor holds HTML."""
    return _TAG.sub("&lt;", text).replace("](", "]\\(").replace("]:", "]\\:")


def one_line(name: str) -> str:
    """A name on one line."""
    return shorten(name, _NAME)


def with_reason(text: str, reason: str | None) -> str:
    """A text, followed by its reason if there is one."""
    return f"{text}: {clean(reason)}" if reason else text


def is_virtual(opened: float) -> bool:
    """Whether a session that opened at this time has a virtual clock, which starts at 0."""
    return opened < _VIRTUAL_BEFORE


def has_times(opened: float, last: float) -> bool:
    """Whether it is known when things happened: a virtual clock that never moved says nothing."""
    return not is_virtual(opened) or last > opened


def lasted(opened: float, last: float) -> str:
    """How long a session lasted so far; a dash if that is not known.

    Args:
        opened: when it began.
        last: when its last event happened.
    """
    return duration(last - opened) if has_times(opened, last) else "–"


def duration(seconds: float) -> str:
    """Seconds as ``m:ss``, ``h:mm:ss`` or ``2d 3:04:05``."""
    whole = int(seconds)
    minutes, seconds = divmod(abs(whole), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours}:{minutes:02}:{seconds:02}" if hours or days else f"{minutes}:{seconds:02}"
    return ("-" if whole < 0 else "") + (f"{days}d " if days else "") + text


def dollars(amount: float) -> str:
    """US dollars to the cent; a smaller amount is said to be smaller."""
    return f"${amount:,.2f}" if amount >= 0.005 or not amount else "<$0.01"


def moment(time: float) -> str:
    """A UTC epoch time as local date and time; the number itself if it is out of range."""
    try:
        return f"{datetime.fromtimestamp(time):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return f"{time:g}"


def day_or_hour(time: float, now: datetime | None = None) -> str:
    """A UTC epoch time in a few characters: ``09:14`` today, ``yesterday``, ``20 Nov``, or ``3 May 2023``.

    Args:
        time: seconds since 1970.
        now: the local time; None for the clock's.
    """
    try:
        when = datetime.fromtimestamp(time)
    except (OverflowError, OSError, ValueError):
        return f"{time:g}"
    now = now or datetime.now()
    days = (now.date() - when.date()).days
    if days == 0:
        return f"{when:%H:%M}"
    if days == 1:
        return "yesterday"
    month = _MONTHS[when.month - 1]
    return f"{when.day} {month}" if when.year == now.year else f"{when.day} {month} {when.year}"


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of digits; a dash for None."""
    return "–" if value is None else f"{value:.{digits}f}"
