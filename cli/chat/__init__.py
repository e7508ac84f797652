"""``duolog chat``: a person in the human's seat, at a terminal or at a pipe.

``state`` holds what is shown, ``app`` draws it on a terminal, ``plain`` prints lines for a pipe.
"""

from __future__ import annotations

__all__ = ()
