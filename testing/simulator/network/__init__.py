"""A server of the HTTP interface and its clients, with the network between them simulated."""

from __future__ import annotations

__all__ = ()
