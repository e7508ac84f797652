"""The workbench: a log in the browser, for those who watch sessions and for those who take part.

``app.make_workbench`` builds the app. It needs the extra ``web``, and is imported where it is needed
and nowhere else. Everything that a page shows is read from the log.
"""

from __future__ import annotations

__all__ = ()
