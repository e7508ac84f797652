"""How what a log holds is shown, on any screen: texts and numbers, differences, records in words."""

from __future__ import annotations

__all__ = ()
