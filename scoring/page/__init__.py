"""Style sheet and script of a report's page; see ``duolog.scoring.html``."""

__all__ = ()
