"""Style sheet and script of a report's page; see ``duolog.scoring.report.html``; the workbench uses them, too."""

__all__ = ()
