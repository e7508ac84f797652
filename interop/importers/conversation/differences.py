"""What changed between two texts of a file."""

from __future__ import annotations

import difflib
from typing import Final

__all__ = ("unified",)

_LONGEST: Final = 5000  # lines that are compared, since that takes more than linear time


def unified(before: str, after: str) -> str:
    """The hunks of a unified diff; empty where the texts are too long to be compared."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) > _LONGEST or len(new) > _LONGEST:
        return ""
    return "\n".join(list(difflib.unified_diff(old, new, lineterm=""))[2:])
