"""Sequences of operations whose results are all known, for logs of the simulator."""

from __future__ import annotations

__all__: tuple[str, ...] = ()
