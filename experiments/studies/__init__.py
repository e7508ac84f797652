"""Studies with people: conditions, consent, assignment, questionnaires, and the export of their data."""

from __future__ import annotations

__all__ = ()
