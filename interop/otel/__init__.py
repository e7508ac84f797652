"""A log as OpenTelemetry: sessions as traces, scores as events, effort and utility as metrics.

``spans``, ``evaluations`` and ``scores`` fold records into ``signals`` and import nothing of
OpenTelemetry; ``sdk`` emits them as spans, events and metrics through its API; ``exporter`` follows
a log. The names are in ``names``. All but ``sdk`` can be imported without the extra ``otel``.
"""

from __future__ import annotations

__all__ = ()
