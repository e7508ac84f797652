"""Importers of the logs of others."""

from __future__ import annotations

__all__ = ()
