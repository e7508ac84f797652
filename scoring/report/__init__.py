"""Reports: the numbers of a set of sessions as one document, and its renderers."""

from __future__ import annotations

from ..metrics import Numbers, aggregate
from ..metrics.explain import Explanation, explain
from .analyses import (
    agreement_document,
    audit_document,
    comparison_document,
    counterfactual_document,
    fork_document,
    forks_document,
    oversight_document,
    power_document,
    sensitivity_document,
)
from .comparing import FEWEST_DRAWN, Compared, compare_agents, of_task, tasks_of
from .document import Document
from .explanation import explanation_document
from .export import document_csv, document_json, report_data, report_rows, to_dataframe
from .html import PagePart, document_html, document_page, documents_page
from .markdown import document_markdown
from .schema import report_schema
from .summary import make_report, report_document
from .terminal import TerminalDocument

__all__ = (
    "FEWEST_DRAWN",
    "Compared",
    "Document",
    "Explanation",
    "Numbers",
    "PagePart",
    "TerminalDocument",
    "aggregate",
    "agreement_document",
    "audit_document",
    "compare_agents",
    "comparison_document",
    "counterfactual_document",
    "document_csv",
    "document_html",
    "document_json",
    "document_markdown",
    "document_page",
    "documents_page",
    "explain",
    "explanation_document",
    "fork_document",
    "forks_document",
    "make_report",
    "of_task",
    "oversight_document",
    "power_document",
    "report_data",
    "report_document",
    "report_rows",
    "report_schema",
    "sensitivity_document",
    "tasks_of",
    "to_dataframe",
)
