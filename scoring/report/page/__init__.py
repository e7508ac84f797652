"""Style sheet and script of a report's page; see ``duolog.scoring.report.html``."""

__all__ = ()
