"""The browser in which pages are tested, measured and drawn for the documentation."""

from __future__ import annotations

import shutil
from typing import Final

__all__ = ("BROWSER", "NO_BROWSER")

_PROGRAMS: Final = ("chromium-headless-shell", "chromium", "google-chrome")

BROWSER: Final = next(filter(None, map(shutil.which, _PROGRAMS)), None)
"""Its path. The one without windows comes first, because it needs two thirds of the CPU time."""

NO_BROWSER: Final = (
    "there is no chromium here: apt-get install -y --no-install-recommends chromium-headless-shell"
)
"""What to say if it is missing."""
