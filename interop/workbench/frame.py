"""The frame of every page: its head, its navigation, and the place for its contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import HTMLResponse, Response

from ...scoring.display.texts import shorten
from .access.identity import Identity
from .markup.html import Html, Node, document, join, tag
from .menu import Export, export_menu
from .palette import palette
from .sharing import share_dialog
from .state import Workbench

__all__ = ("ENTRANCE", "page", "plain_page", "problem_page")

_PLACES: Final = (
    ("/sessions", "Sessions"),
    ("/live", "Live"),
    ("/compare", "Compare"),
    ("/review", "Review"),
    ("/alerts", "Alerts"),
    ("/new", "New session"),
)
_TITLE: Final = 80
_MARK: Final = tag(
    "svg",
    tag("circle", cx=7, cy=9, r=5.5, fill="currentColor"),
    tag("circle", cx=11, cy=9, r=5.5, fill="none", stroke="currentColor", stroke_width=2),
    viewBox="0 0 18 18",
    aria_hidden="true",
)
_PROBLEMS: Final = {
    401: "Please sign in",
    403: "You cannot open this",
    404: "Not found",
    429: "Too many requests",
}
_KEYS: Final = {
    "/sessions": (
        ("/", "filter, or search"),
        ("Backspace", "in the empty field: remove the last filter"),
    ),
    "/compare": (
        ("arrows", "in a figure: from dot to dot"),
        ("Enter", "open the session of the dot"),
    ),
    "session": (
        ("← →", "record before, record after"),
        ("[ ]", "round before, round after"),
        ("Home", "the beginning"),
        ("f", "follow the session again"),
        ("/", "find; Enter: the next one, Shift Enter: the one before"),
        ("n", "in a review queue: the next session"),
    ),
}
"""The functions of keys, by page."""


def page(
    workbench: Workbench,
    identity: Identity,
    title: str,
    *contents: Node,
    script: str,
    at: str = "",
    position: int = 0,
    kind: str | None = None,
    status: int = 200,
    exports: Sequence[Export] = (),
) -> Response:
    """A page of the workbench.

    Args:
        workbench: the shared state of the parts.
        identity: the identity of the user.
        title: the title of the page; the log's name is added.
        contents: the contents of its main part.
        script: the JavaScript module that makes it live, by the name of its file.
        at: the place in the navigation that it belongs to.
        position: the position of the log, up to which the page shows it; its stream continues from
            there.
        kind: the kind of the page, for the style sheet.
        status: the status of the response.
        exports: the files that the server makes of it, apart from its figures and tables.
    """
    places = _PLACES if identity.reads_log else ()
    hidden = () if identity.role == "operator" else ("/review",)
    shown = [one for one in places if one[0] in workbench.places and one[0] not in hidden]
    shares = identity.role == "operator" and not workbench.access.read_only
    navigation = [
        tag("a", name, href=place, aria_current="page" if place == at else None)
        for place, name in shown
    ]
    header = tag(
        "header",
        tag("a", "Skip to the contents", href="#main", class_="skip"),
        tag("a", _MARK, "Duolog", href="/sessions", class_="brand")
        if identity.reads_log
        else tag("span", _MARK, "Duolog", class_="brand"),
        tag("nav", *navigation, aria_label="Pages"),
        tag(
            "button",
            "Go to …",
            tag("kbd", "Ctrl K"),
            type="button",
            id="show-palette",
            aria_haspopup="dialog",
        )
        if identity.reads_log
        else None,
        tag("span", shorten(workbench.name, _TITLE) if identity.reads_log else None, class_="log"),
        tag("span", identity.role, class_="role", title="what you may do here")
        if identity.reads_log
        else None,
        export_menu(exports) if identity.reads_log else None,
        tag("button", "Share", type="button", id="show-share", aria_haspopup="dialog")
        if shares
        else None,
        tag("button", "?", type="button", id="show-keys", title="Keys", aria_label="Keys")
        if identity.reads_log
        else None,
        tag("span", "", id="connection", role="status", class_="connection"),
        class_="top",
    )
    body = tag(
        "body",
        header,
        tag("main", *contents, id="main", tabindex=-1, data_position=position),
        _keys(at or "session") if identity.reads_log else None,
        palette() if identity.reads_log else None,
        share_dialog() if shares else None,
        class_=kind,
    )
    scripts = (script, "keys.js", "export.js", "palette.js") if identity.reads_log else (script,)
    scripts = (*scripts, "share.js") if shares else scripts
    head = _head(f"{title} · {workbench.name}" if identity.reads_log else title, *scripts)
    return HTMLResponse(document(head, body), status)


def _keys(at: str) -> Html:
    """The box that says which keys do what."""
    pairs = (
        *_KEYS.get(at, ()),
        ("Ctrl K", "any page, session or action"),
        ("?", "these keys"),
        ("Esc", "close this box"),
    )
    rows = [[tag("dt", tag("kbd", key)), tag("dd", does)] for key, does in pairs]
    return tag("dialog", tag("h2", "Keys"), tag("dl", rows), id="keys", aria_label="Keys")


def _head(title: str, *scripts: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", shorten(title, _TITLE)),
        tag("link", rel="icon", href="/assets/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/assets/report.css"),
        tag("link", rel="stylesheet", href="/assets/workbench.css"),
        [tag("script", type="module", src=f"/assets/{script}") for script in scripts],
    )


def plain_page(title: str, *contents: Node, script: str, kind: str, status: int = 200) -> Response:
    """A page for people without rights in the workbench, such as participants of a study.

    Args:
        title: the title of the page.
        contents: the contents of its body.
        script: the JavaScript module that makes it live, by the name of its file.
        kind: the kind of the page, for the style sheet.
        status: the status of the response.
    """
    return HTMLResponse(document(_head(title, script), tag("body", *contents, class_=kind)), status)


def problem_page(message: str, status: int) -> Response:
    """A page that explains why it is empty, and links to the sessions."""
    back = tag("p", tag("a", "All sessions", href="/sessions"))
    said = tag("p", message, class_="problem", role="alert")
    main = tag(
        "main",
        tag("h1", _PROBLEMS.get(status, "This does not work")),
        said,
        back,
        id="main",
        class_="entrance",
    )
    return HTMLResponse(document(_head("Duolog workbench"), tag("body", main)), status)


def _entrance() -> str:
    """The empty page: its script exchanges the token for a cookie, and continues."""
    box = tag(
        "form",
        tag("label", "Token", for_="token"),
        tag("input", id="token", type="password", autocomplete="off", required=True),
        tag("button", "Enter", type="submit"),
        id="entrance",
        hidden=True,
    )
    main = tag(
        "main",
        tag("h1", "Duolog workbench"),
        tag("p", "Opening …", id="say", role="status"),
        box,
        tag("noscript", "The workbench needs JavaScript."),
        id="main",
        class_="entrance",
    )
    return document(_head("Duolog workbench", "enter.js"), tag("body", join(main)))


ENTRANCE: Final = _entrance()
"""The page at ``/``."""
