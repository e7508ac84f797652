"""``duolog watch``: a terminal view of a log as it grows, and as it was at any earlier moment.

``state`` knows what is shown, and reads it from the log; ``app`` and the panes draw it.
"""

from __future__ import annotations

__all__ = ()
