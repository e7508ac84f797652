"""Prompts: text files next to the code that uses them, loaded once, identified by a digest."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import final

from ... import codec
from ...errors import InvalidInput

__all__ = ("Prompts", "load_prompts")


@final
class Prompts:
    """Templates by name, with placeholders such as ``${chat}``.

    Filled-in values are never read as templates, so a message cannot act as one.

    Args:
        texts: the templates.

    Attributes:
        digest: the digest of all templates; another one is another experiment.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._templates = {name: Template(text.strip()) for name, text in texts.items()}
        self.digest = codec.digest({name: t.template for name, t in self._templates.items()})

    def fill(self, name: str, **values: str) -> str:
        """The text of a template with its placeholders filled in; values without a placeholder are
        ignored.

        Raises:
            InvalidInput: there is no such template, or a value is missing.
        """
        template = self._templates.get(name)
        if template is None:
            known = ", ".join(sorted(self._templates))
            raise InvalidInput(f"unknown prompt {name!r}; choose from {known}")
        try:
            return template.substitute(values)
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"prompt {name!r} cannot be filled in: {error}") from None


def load_prompts(package: str, folder: str = "prompts") -> Prompts:
    """The templates in a package's folder: one file each, ``name.md``.

    To be called when a module is loaded, since it reads files.

    Raises:
        InvalidInput: there are none.
    """
    texts = {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8")
        for entry in files(package).joinpath(folder).iterdir()
        if entry.name.endswith(".md")
    }
    if not texts:
        raise InvalidInput(f"package {package!r} lacks a folder {folder!r} of prompts")
    return Prompts(texts)
