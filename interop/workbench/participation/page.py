"""The pages of those who take part: beginning a session, and working in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..markup.html import Html, Node, tag
from .host import Offer

__all__ = ("Sitting", "new_contents", "take_contents")


class Sitting(NamedTuple):
    """The circumstances of a session, for its page.

    Attributes:
        until: when the time is up, in seconds since 1970; None for no limit.
        in_study: whether it belongs to a study, whose next page follows.
        title: the title of the page: the study's.
    """

    until: float | None = None
    in_study: bool = False
    title: str = "Working together"


def take_contents(session: str, actor: str, sitting: Sitting) -> Sequence[Node]:
    """The main part of the page for a participant of a session.

    Args:
        session: its id.
        actor: the participant's name.
        sitting: the circumstances.
    """
    onward = tag("a", "Continue", href="/study", class_="primary") if sitting.in_study else None
    tabs = (("brief", "Brief"), ("talk", "Conversation"), ("output", "Output"))
    return (
        tag(
            "div",
            tag("h1", sitting.title),
            tag("p", "", id="time", class_="quiet", role="timer"),
            _stop(),
            class_="participate-top",
        ),
        tag("p", "", id="trouble", class_="problem", role="alert", hidden=True),
        tag(
            "div",
            tag("b", "This session has ended. Thank you."),
            " ",
            onward,
            id="onward",
            role="status",
            hidden=True,
        ),
        tag(
            "div",
            _brief(in_study=sitting.in_study),
            _conversation(),
            _output(),
            class_="together",
            id="together",
            data_session=session,
            data_actor=actor,
            data_until=sitting.until,
        ),
        tag(
            "nav",
            *(
                tag("button", name, tag("b", "", class_="badge"), type="button", data_tab=tab)
                for tab, name in tabs
            ),
            class_="tabs",
            aria_label="Parts of the page",
        ),
        _foot(),
    )


def _brief(*, in_study: bool) -> Html:
    leave = tag("a", "Leave the study and delete my data", href="/study/leave")
    return tag(
        "aside",
        tag("h2", "Your brief"),
        tag("div", "", id="brief-text"),
        tag(
            "div",
            tag("h3", "How to finish"),
            tag(
                "p",
                "Press ",
                tag("b", "Done, it is good"),
                " when you are happy with the output. Press ",
                tag("b", "I give up"),
                " if this leads nowhere. You can stop at any time.",
            ),
            tag("p", leave) if in_study else None,
            class_="finish",
        ),
        class_="brief",
        aria_label="Your brief",
        tabindex=0,
    )


def _conversation() -> Html:
    composer = tag(
        "form",
        tag("label", "Your message", for_="message", class_="unseen"),
        tag("textarea", "", id="message", rows=3, dir="auto", placeholder="Write a message …"),
        tag("button", "Send", type="submit", class_="primary"),
        id="composer",
    )
    actions = tag(
        "details",
        tag("summary", "Do something yourself"),
        tag(
            "form",
            tag("label", "Action", for_="action"),
            tag("select", id="action"),
            tag("p", "", id="action-help", class_="quiet"),
            tag("div", "", id="fields"),
            tag("button", "Do it", type="submit"),
            id="acting",
        ),
        id="actions",
        hidden=True,
    )
    return tag(
        "section",
        tag("h2", "Conversation"),
        tag(
            "div",
            id="entries",
            role="log",
            aria_live="polite",
            aria_label="Conversation",
            tabindex=0,
        ),
        tag("div", id="approvals", aria_live="assertive"),
        _rating(),
        composer,
        actions,
        class_="talk",
    )


def _output() -> Html:
    bar = tag(
        "div",
        tag("p", "", id="merge-why"),
        tag("button", "Merge", type="button", id="merge-both"),
        tag("button", "Take theirs", type="button", id="merge-theirs"),
        tag("button", "Keep mine", type="button", id="merge-mine"),
        id="merge",
        class_="merge",
        role="group",
        aria_label="The output has changed meanwhile",
        hidden=True,
    )
    tools = tag(
        "div",
        tag("button", "Save", type="button", id="save", title="Ctrl+S"),
        tag("label", tag("input", type="checkbox", id="autosave", checked=True), " as I type"),
        tag("label", "Go back to", for_="versions"),
        tag("select", tag("option", "an earlier version", value=""), id="versions"),
        tag("span", "", id="saved", role="status", class_="quiet"),
        class_="tools",
    )
    return tag(
        "section",
        tag("h2", "Output"),
        tools,
        bar,
        tag("div", id="changes", aria_live="polite", role="group", aria_label="Changes by others"),
        tag("label", "The output", for_="editor", class_="unseen"),
        tag("textarea", "", id="editor", dir="auto", spellcheck="true"),
        class_="output",
    )


def _stop() -> Html:
    return tag(
        "div",
        tag("button", "I give up", type="button", data_end="abandoned"),
        " ",
        tag("button", "Done, it is good", type="button", data_end="finished", class_="primary"),
        tag(
            "span",
            tag("label", "Why (optional)", for_="why"),
            tag("input", id="why", type="text"),
            tag("button", "End the session", type="button", id="end-now"),
            tag("button", "Keep working", type="button", id="end-not"),
            id="ending",
            hidden=True,
        ),
        class_="stops",
    )


def _rating() -> Html:
    meanings = ("a step back", "no progress", "a little", "good progress", "a great deal")
    return tag(
        "fieldset",
        tag("legend", "How much did the last round help? (optional)"),
        tag("span", meanings[0], class_="quiet", aria_hidden="true"),
        *(
            tag("button", str(number), type="button", data_rating=number, title=meaning)
            for number, meaning in enumerate(meanings, start=1)
        ),
        tag("span", meanings[-1], class_="quiet", aria_hidden="true"),
        id="rating",
    )


def _foot() -> Html:
    effort = tag(
        "label",
        tag("input", type="checkbox", id="effort"),
        " Record how long I read, type and pause, and how many characters I change. Only counts "
        "are recorded, never keys or what I do elsewhere.",
        class_="consent",
    )
    return tag("footer", effort, class_="foot")


def new_contents(offers: Sequence[Offer]) -> Sequence[Node]:
    """The main part of the page for a new session."""
    tasks = [
        tag(
            "option",
            f"{offer.task}: {offer.description}",
            value=offer.task,
            data_agents=msgspec.json.encode(offer.agents).decode(),
            data_agent=offer.agent,
        )
        for offer in offers
    ]
    form = tag(
        "form",
        tag("label", "Task", for_="task"),
        tag("select", *tasks, id="task", required=True),
        tag("fieldset", tag("legend", "Agents, one or several"), id="agents"),
        tag("label", "Model behind the agents (empty: rules)", for_="model"),
        tag("input", id="model", type="text", autocomplete="off"),
        tag("label", "Instance (empty: the first)", for_="instance"),
        tag("input", id="instance", type="text", autocomplete="off"),
        tag("label", "Seed", for_="seed"),
        tag("input", id="seed", type="number", value=0, min=0),
        tag("label", "People", for_="people"),
        tag("input", id="people", type="number", value=1, min=1, max=8),
        tag(
            "div",
            tag("button", "Begin", type="submit", class_="primary"),
            " ",
            tag("button", "Invite others by links", type="submit", value="invite"),
        ),
        tag(
            "p",
            "Begin: you take part yourself. Invite others: you get a link to send to each person.",
            class_="quiet",
        ),
        id="new",
        class_="new",
    )
    return (
        tag("h1", "New session"),
        form,
        tag("p", "", id="said", role="status"),
        tag("div", id="links"),
    )
