"""Tables of closed sessions and their rounds, in Parquet: written from a log, reported on by DuckDB."""

from __future__ import annotations

from .exporter import TablesWritten as TablesWritten
from .exporter import export_tables as export_tables
from .report import TablesReport as TablesReport
from .report import report_tables as report_tables

__all__ = ("TablesReport", "TablesWritten", "export_tables", "report_tables")
