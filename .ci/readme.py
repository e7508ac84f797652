"""Gives package indexes the README with absolute links, since it is shown there without its files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


class AbsoluteLinks(MetadataHookInterface):
    """The hook of hatchling that fills in ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the README, with links to the repository that ``[project.urls]`` names."""
        repository = metadata["urls"]["Repository"]

        def absolute(found: re.Match[str]) -> str:
            image, text, path = found.groups()
            kind = "raw" if image else "blob"
            return f"{image}[{text}]({repository}/{kind}/main/{path})"

        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _LINK.sub(absolute, text),
        }
