"""Figures of a report, as PNG, SVG and PDF."""

from __future__ import annotations

from .saving import save_figures as save_figures

__all__ = ("save_figures",)
