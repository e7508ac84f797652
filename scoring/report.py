"""Reports: the numbers of a set of sessions, as data, as text, and as a table for the terminal."""

from __future__ import annotations

from .metrics import Report, aggregate
from .metrics.explain import Explanation, explain
from .rendering.data import report_data, report_json
from .rendering.explanation import explanation_text
from .rendering.flat import report_csv, report_rows, to_dataframe
from .rendering.markdown import report_markdown
from .rendering.table import ReportTable

__all__ = (
    "Explanation",
    "Report",
    "ReportTable",
    "aggregate",
    "explain",
    "explanation_text",
    "report_csv",
    "report_data",
    "report_json",
    "report_markdown",
    "report_rows",
    "to_dataframe",
)
