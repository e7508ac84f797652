"""The prompts of travel planning for agents and simulated users that call models."""

from __future__ import annotations

from ...engine.models.prompting.prompts import load_prompts
from ...engine.task import Brief

__all__ = ("PROMPTS", "TRAVEL_BRIEF")

PROMPTS = load_prompts(__package__)
"""The templates of this task."""

TRAVEL_BRIEF = Brief(description=PROMPTS.fill("task"), output=PROMPTS.fill("output"))
"""The description of the task for actors that call models."""
