"""The prompts of tutoring for agents and simulated users that call models."""

from __future__ import annotations

from ..kit.briefs import load_brief

__all__ = ("TUTORING_BRIEF",)

TUTORING_BRIEF = load_brief(__package__)
"""The description of the task for actors that call models."""
