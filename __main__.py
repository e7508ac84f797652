"""``python -m duolog``: the command line."""

from __future__ import annotations

import sys

from duolog.cli import main

__all__ = ()

if __name__ == "__main__":
    sys.exit(main())
