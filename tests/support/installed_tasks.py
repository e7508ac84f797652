"""The tasks that are installed, as messages list them."""

from __future__ import annotations

from importlib.metadata import entry_points

TASKS = ", ".join(sorted({entry.name for entry in entry_points(group="duolog.tasks")}))
