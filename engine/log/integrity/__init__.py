"""What shows that a log is what was written: checksums, the hash chain, and the check of all of it."""

from __future__ import annotations

__all__ = ()
