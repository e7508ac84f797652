"""Profiles of collaborators: a frozen suite is played, what kind of collaborator it shows is named."""

from __future__ import annotations

__all__ = ()
