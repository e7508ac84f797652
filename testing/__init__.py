"""For those who test agents: a pytest plug-in that records a test's collaboration and asserts on it.

Nothing here is loaded before a test asks for it, since pytest loads the plug-in in every run.
"""

from __future__ import annotations

__all__ = ()
