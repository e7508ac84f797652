"""Logs from elsewhere: importers for the formats of others, and chat messages both ways.

One importer reads one format (see ``importer.Importer``); ``finding`` knows which there are and
recognises what a file is; ``taking`` brings what they read into a log, once however often it is
imported.
"""

from __future__ import annotations

__all__ = ()
