"""Experiments from Python: runs, estimates, forks, counterfactuals, tuning, and sessions with people.

The command line calls what is here, and prints what it gives.
"""

from __future__ import annotations

__all__ = ()
