"""How fast the human of a session reads and types, under a virtual clock."""

from __future__ import annotations

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened
from ...engine.session.time.timing import Timing

__all__ = ("pace_of", "words_of")


def pace_of(opened: SessionOpened, timing: Timing) -> tuple[float, float]:
    """Seconds per word read, and per word typed.

    Args:
        opened: the opening; its ``config["timing"]`` goes before ``timing``, field by field.
        timing: the rates otherwise.

    Raises:
        InvalidInput: a rate is no positive number.
    """
    settings = opened.config.get("timing")
    if settings is not None:
        known = msgspec.structs.asdict(timing)
        try:
            timing = msgspec.convert(
                known | dict(settings) if isinstance(settings, dict) else settings, Timing
            )
        except msgspec.ValidationError as error:
            raise InvalidInput(f'config["timing"] of a session is not valid: {error}') from error
    if not (timing.read_wpm > 0 and timing.type_wpm > 0):
        raise InvalidInput(
            "reading and typing speed are words a minute and must be above 0, not "
            f"{timing.read_wpm} and {timing.type_wpm}"
        )
    return 60.0 / timing.read_wpm, 60.0 / timing.type_wpm


def words_of(text: str) -> int:
    """About how many words a text has: one more than blanks and line ends; 0 for the empty text."""
    return text.count(" ") + text.count("\n") + 1 if text else 0
