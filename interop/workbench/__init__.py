"""The workbench: a log in the browser, for watching sessions and for taking part.

``app.make_workbench_app`` builds the app. It needs the extra ``web``, and is imported only when needed.
Everything that a page shows is read from the log.
"""

from __future__ import annotations

__all__ = ()
