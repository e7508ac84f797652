"""A log over HTTP, for products in other languages: an ASGI app on Starlette, served by uvicorn.

``app.make_app`` builds the app, ``server.serve`` runs it. Both need the extra ``web``, and are
imported only when needed.
"""

from __future__ import annotations

__all__ = ()
