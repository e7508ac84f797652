"""What agents and simulated users on models are told of travel planning."""

from __future__ import annotations

from ...engine.models.prompting.prompts import load_prompts
from ...engine.task import Brief

__all__ = ("PROMPTS", "TRAVEL_BRIEF")

PROMPTS = load_prompts(__package__)
"""The templates of this task."""

TRAVEL_BRIEF = Brief(description=PROMPTS.fill("task"), output=PROMPTS.fill("output"))
"""The task as actors on models are told of it."""
