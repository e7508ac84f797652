"""Makes ``build/editable/duolog``, a link to the checkout, when that is installed as editable.

The checkout may have any name, and is the package ``duolog``. The directory of the link is on the path
of an editable installation, so that Python, type checkers and editors find the package as they
find any other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EditableLink(BuildHookInterface[Any]):
    """The hook of hatchling that runs before each build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes the link, unless the build is an ordinary one."""
        if version == "editable":
            link_package(Path(self.root))


def link_package(checkout: Path) -> None:
    """Makes the link. On Windows it is a junction, which any user may make."""
    link = checkout / "build" / "editable" / "duolog"
    link.parent.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        import _winapi

        if not link.exists():
            _winapi.CreateJunction(str(checkout), str(link))
    elif not link.is_symlink():
        link.symlink_to("../..", target_is_directory=True)
