"""The command line with all of its commands, for those who look at them: tests and the reference."""

from __future__ import annotations

from .root import COMMANDS, app, built_from, load_commands

__all__ = ("app", "built_from")

load_commands(*COMMANDS)
