"""OpenTelemetry's providers as types, which resolve when it is not loaded or not installed too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
else:

    class TracerProvider(Protocol):
        """Makes tracers: ``opentelemetry.trace.TracerProvider``."""

        def get_tracer(self, name: str) -> object:
            """A tracer."""

    class MeterProvider(Protocol):
        """Makes meters: ``opentelemetry.metrics.MeterProvider``."""

        def get_meter(self, name: str) -> object:
            """A meter."""

    class LoggerProvider(Protocol):
        """Makes loggers: ``opentelemetry._logs.LoggerProvider``."""

        def get_logger(self, name: str) -> object:
            """A logger."""


__all__ = ("LoggerProvider", "MeterProvider", "TracerProvider")
