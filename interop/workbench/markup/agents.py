"""The colour and the shape of an agent: the same on every page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

from ....scoring.display.texts import shorten
from .html import Html, tag

__all__ = ("AgentMarks",)

_NAME: Final = 60
_SHAPES: Final = (
    tag("circle", cx=5, cy=5, r=4.5),
    tag("rect", x=0.5, y=0.5, width=9, height=9),
    tag("path", d="M5 .5 9.5 9.5h-9z"),
    tag("path", d="M5 0l5 5-5 5-5-5z"),
    tag("path", d="M5 9.5.5.5h9z"),
)


@final
class AgentMarks:
    """Gives each agent a colour and a shape, in the order in which the agents are named.

    Args:
        names: the names of the agents, in the order in which they appeared.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    @classmethod
    def at(cls, places: Mapping[str, int]) -> AgentMarks:
        """The marks of agents whose places are known."""
        found = cls(())
        found._places = dict(places)
        return found

    def named(self, name: str) -> Html:
        """The mark and the name of an agent; without a mark if more than five came before it."""
        text, colour = tag("bdi", shorten(name, _NAME)), self.colour(name)
        if not colour:
            return text
        shape = _SHAPES[self._places[name]]
        drawing = tag("svg", shape, viewBox="0 0 10 10", aria_hidden="true")
        return tag("span", drawing, text, class_=f"agent {colour}")

    @property
    def places(self) -> Mapping[str, int]:
        """The places of the agents among colours and shapes; from the sixth on there is none."""
        return self._places

    def colour(self, name: str) -> str:
        """The class of an agent's colour; empty if more than five agents came before it."""
        place = self._places.get(name, len(_SHAPES))
        return f"a{place + 1}" if place < len(_SHAPES) else ""
