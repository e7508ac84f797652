"""Alerts: rules over sessions, when each of them fired, and webhooks that are called then."""

from __future__ import annotations

__all__ = ()
