"""A simulator of logs: one seed decides what is done to a log, and what goes wrong meanwhile.

The engine's own code runs, on an event loop whose time is virtual, in threads that take turns, on a
disk that fails. After each operation, and after each end of a process, all that a log promises is
checked. ``check_log_in_simulation`` runs
it on a store. In a checkout, ``python -m duolog.benchmarks.campaign`` runs seeds and repeats them.
"""

from __future__ import annotations

__all__ = ()
