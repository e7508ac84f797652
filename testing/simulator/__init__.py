"""A simulator of logs: one seed decides the operations on a log, and the faults during them.

The engine's own code runs on an event loop with virtual time, in threads that take turns, on a disk
that fails. After each operation, and whenever a process ends, the simulator checks all promises of a
log. ``check_log_in_simulation`` runs it on a store. In a checkout, ``python -m
duolog.benchmarks.campaign`` runs seeds and repeats them.
"""

from __future__ import annotations

__all__ = ()
