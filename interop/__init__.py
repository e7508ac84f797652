"""Connects a log to other tools: importers, AG-UI, HTTP, OpenTelemetry, LiteLLM, chat messages."""

from __future__ import annotations

__all__ = ()
