"""A log as OpenTelemetry: sessions as traces, scores as events, effort and utility as metrics.

``spans`` and ``evaluations`` fold records into facts (``facts``) and know nothing of OpenTelemetry;
``emitting`` makes them spans, events and metrics through its API; ``exporting`` follows a log. The
names are in ``names``. All but ``emitting`` can be imported without the extra ``otel``.
"""

from __future__ import annotations

__all__ = ()
