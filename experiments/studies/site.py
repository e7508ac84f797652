"""The pages of a study: consent, instructions, questionnaires, the way to a session and back, thanks, leaving."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, TypeVar, final
from urllib.parse import urlencode

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...interop.http.responses import as_json, problem
from ...interop.workbench.access.body import decoded_body, read_body
from ...interop.workbench.access.entering import let_in
from ...interop.workbench.access.identity import Identity
from ...interop.workbench.app import Part
from ...interop.workbench.frame import plain_page
from ...interop.workbench.markup.html import Html, Node, tag
from ...interop.workbench.markup.text import rich_text
from ...interop.workbench.state import Workbench
from .instruments import Item
from .people import People, Step
from .plan import Questionnaire
from .recruiting import Recruits
from .running import Sittings

__all__ = ("OPEN", "guests", "study_part")

OPEN: Final = ("/study", "/v1/study/")
"""The paths that are open without an identity of the workbench: the study has a separate cookie."""

T = TypeVar("T")

_COOKIE: Final = "duolog-study"
_KEPT: Final = 90 * 86400  # seconds that a participant's cookie holds
_BODY: Final = 1 << 18
_CODE: Final = "p"
_WRAPPED: Final = re.compile(r"(?<![\n ])\n(?=[^\W\d_])")
"""The end of a line whose paragraph continues in the next: not before a list, a heading or an empty line."""


class _Consent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to the consent text; ``ids`` are the parameters of their address."""

    agreed: bool
    ids: Mapping[str, str] = {}


class _Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answers to a questionnaire."""

    questionnaire: str
    place: int | None
    answers: Mapping[str, JSON]


class _Begin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The condition that is to be begun."""

    place: int


_decode_consent = msgspec.json.Decoder(_Consent).decode
_decode_answers = msgspec.json.Decoder(_Answers).decode
_decode_begin = msgspec.json.Decoder(_Begin).decode


def guests(people: People, recruits: Recruits) -> Callable[[Headers], str]:
    """Names the participant behind a request. A stranger gets a cookie for the asking, so only those who have
    agreed to take part count.
    """

    def guest_of(headers: Headers) -> str:
        cookie = cookie_parser(headers.get("cookie", "")).get(_COOKIE, "")
        name = recruits.verified(cookie) if cookie else None
        return name if name and people.person(name).assigned is not None else ""

    return guest_of


def study_part(people: People, recruits: Recruits, sittings: Sittings) -> Part:
    """The part of the workbench in which people take part in a study."""

    def routes(workbench: Workbench) -> Sequence[Route]:
        own = _Routes(workbench, people, recruits, sittings)
        return (
            Route("/study", own.page),
            Route("/study/leave", own.leaving),
            Route("/study/completed", own.completed),
            Route("/v1/study/consent", own.consent, methods=["POST"]),
            Route("/v1/study/answers", own.answers, methods=["POST"]),
            Route("/v1/study/begin", own.begin, methods=["POST"]),
            Route("/v1/study/withdraw", own.withdraw, methods=["POST"]),
        )

    return routes


@final
class _Routes:
    """The endpoints."""

    def __init__(
        self, workbench: Workbench, people: People, recruits: Recruits, sittings: Sittings
    ) -> None:
        self._workbench = workbench
        self._people = people
        self._study = people.study
        self._recruits = recruits
        self._sittings = sittings
        self._text = sha256(self._study.consent.encode()).hexdigest()[:16]

    # --- pages ------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """The page of whatever a participant does next."""
        parameter = self._study.recruitment.participant
        given = request.query_params.get(parameter or _CODE, "")
        known = self._known(request)
        if given:
            name = self._recruits.pseudonym(given)
        elif known is not None:
            name = known
        elif parameter:
            return self._page(
                "Please open your own link",
                tag(
                    "p",
                    f"The link lacks {parameter}, which says who you are. Please open the link that you were sent.",
                ),
                status=403,
            )
        else:
            code = urlencode({_CODE: secrets.token_urlsafe(12)})
            return RedirectResponse(f"/study?{code}", 303)
        step = await self._people.step(name)
        response = await self._shown(request, name, step)
        response.set_cookie(
            _COOKIE,
            self._recruits.signed(name),
            max_age=_KEPT,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="lax",  # people arrive by a link on another site
        )
        return response

    async def _shown(self, request: Request, name: str, step: Step) -> Response:
        study = self._study
        match step.kind:
            case "consent":
                return self._page(
                    study.title,
                    _prose(study.consent),
                    _buttons(
                        "consent",
                        ("yes", "I agree to take part"),
                        ("no", "I do not want to take part"),
                    ),
                )
            case "declined":
                return self._page(
                    "You are not taking part",
                    tag("p", "We kept nothing about you, only that someone declined."),
                    _buttons("consent", ("yes", "I have changed my mind and want to take part")),
                )
            case "full":
                return self._page(
                    study.title,
                    tag(
                        "p",
                        "This study has all the participants that it needs. Thank you for your interest.",
                    ),
                )
            case "withdrawn":
                return self._page(
                    "You have left the study",
                    tag("p", "Your data have been deleted. You can close this page."),
                )
            case "questions":
                assert step.questionnaire is not None
                return self._page(
                    step.questionnaire.title or "A few questions",
                    *_questions(step.questionnaire, step, name),
                    step=step,
                )
            case "begin":
                return self._beginning(name, step)
            case "working":
                return await self._working(request, name, step)
            case _:
                return await self._done(name)

    def _beginning(self, name: str, step: Step) -> Response:
        assigned = self._people.person(name).assigned
        assert assigned is not None
        assert step.place is not None
        condition = self._study.conditions()[assigned.conditions[step.place - 1]]
        first = step.place == 1
        count = len(assigned.conditions)
        heading = "What to do" if first else f"Part {step.place} of {count}"
        texts = [self._study.instructions if first else "", condition.instructions]
        minutes = f"You have {condition.minutes:g} minutes." if condition.minutes else None
        return self._page(
            heading,
            *(_prose(text) for text in texts if text),
            None if minutes is None else tag("p", minutes),
            _buttons("begin", (str(step.place), "Begin")),
            step=step,
        )

    async def _working(self, request: Request, name: str, step: Step) -> Response:
        begun = self._people.person(name).begun[step.place or 0]
        response = self._page(
            "Your session is still open",
            tag("p", "You can continue where you left off."),
            tag("p", tag("a", "Continue", href=_seat_address(begun.session), class_="primary")),
            step=step,
        )
        return await self._let_in(request, response, begun.session)

    async def _done(self, name: str) -> Response:
        lines: list[Node] = [_prose(self._study.thanks)]
        if self._study.show_result:
            for begun in self._people.person(name).begun.values():
                result = (await self._sittings.result(begun.session)).get("final")
                if isinstance(result, float):
                    part = f" in part {begun.place}" if len(self._study.condition) > 1 else ""
                    text = f"You reached {result:.0%} of what was possible{part}."
                    lines.append(tag("p", text, class_="reached"))
        if self._study.completion:
            link = tag(
                "a", "Finish and return to the site that you came from", href="/study/completed"
            )
            lines.append(tag("p", link))
        return self._page("Thank you", *lines)

    async def completed(self, request: Request) -> Response:
        """Leads those who are done to the completion link."""
        name = self._known(request)
        if name is None or (await self._people.step(name)).kind != "done":
            return RedirectResponse("/study", 303)
        return RedirectResponse(self._study.completion or "/study", 303)

    async def leaving(self, request: Request) -> Response:
        """The page for leaving the study for good."""
        if self._known(request) is None:
            return RedirectResponse("/study", 303)
        return self._page(
            "Leave the study",
            tag(
                "p",
                "Your messages, your answers and what you made will be deleted. This cannot be undone.",
            ),
            _buttons("withdraw", ("yes", "Leave and delete my data")),
            tag("p", tag("a", "Back to the study", href="/study")),
            leave=False,
        )

    # --- what they do -----------------------------------------------------------------------------

    async def consent(self, request: Request) -> Response:
        """Records an answer to the consent text."""
        name = self._known(request)
        if name is None:
            return _stranger()
        said = await decoded_body(request, _decode_consent, _BODY)
        if said.agreed:  # before that, nothing of them is kept
            if (await self._people.step(name)).kind == "full":
                raise InvalidInput("this study has all the participants that it needs")
            parameter = self._study.recruitment.participant
            if parameter and self._recruits.pseudonym(said.ids.get(parameter, "")) == name:
                await self._recruits.keep(name, said.ids)
        await self._people.consent(name, agreed=said.agreed, text=self._text)
        return as_json({"next": "/study"})

    async def answers(self, request: Request) -> Response:
        """Records the answers to a questionnaire."""
        name = self._known(request)
        if name is None:
            return _stranger()
        given = await decoded_body(request, _decode_answers, _BODY)
        await self._people.answer(name, given.questionnaire, given.place, given.answers)
        return as_json({"next": "/study"})

    async def begin(self, request: Request) -> Response:
        """Begins or resumes a condition."""
        name = self._known(request)
        if name is None:
            return _stranger()
        place = (await decoded_body(request, _decode_begin, _BODY)).place
        session = await self._sittings.begin(name, place)
        response = as_json({"next": _seat_address(session)})
        return await self._let_in(request, response, session)

    async def withdraw(self, request: Request) -> Response:
        """Erases the records of a participant."""
        name = self._known(request)
        if name is None:
            return _stranger()
        await read_body(request, _BODY)
        await self._sittings.withdraw(name)
        await self._recruits.remove(name)
        return as_json({"next": "/study"})

    # --- shared -----------------------------------------------------------------------------------

    def _known(self, request: Request) -> str | None:
        return self._recruits.verified(request.cookies.get(_COOKIE, ""))

    async def _let_in(self, request: Request, response: Response, session: str) -> Response:
        """Seats a participant in their session."""
        access = self._workbench.access
        identity = Identity("participant", await self._sittings.seat(session), session)
        let_in(request, response, access, identity, access.token(identity))
        return response

    def _page(
        self,
        heading: str,
        *contents: Node,
        step: Step | None = None,
        status: int = 200,
        leave: bool = True,
    ) -> Response:
        top = tag(
            "header",
            tag("p", self._study.title, class_="brand"),
            None if step is None else tag("p", f"Step {step.at + 1} of {step.of}", class_="quiet"),
            class_="study-top",
        )
        progress = None
        if step is not None:
            progress = tag(
                "progress", value=step.at, max=step.of, aria_label="How far you are in the study"
            )
        foot = tag("footer", tag("a", "Leave the study and delete my data", href="/study/leave"))
        main = tag(
            "main",
            progress,
            tag("h1", heading),
            *contents,
            tag("noscript", tag("p", "This study needs JavaScript.")),
            tag("p", "", id="said", role="alert", class_="problem", hidden=True),
            foot if leave and step is not None else None,
            id="main",
            tabindex=-1,
        )
        return plain_page(
            self._study.title, top, main, script="study.js", kind="study", status=status
        )


def _prose(text: str) -> Html:
    """A text of the plan: the lines of a paragraph run on, unlike in a message."""
    return rich_text(_WRAPPED.sub(" ", text))


def _seat_address(session: str) -> str:
    return f"/participate?{urlencode({'id': session})}"


def _stranger() -> Response:
    return problem(401, "open the study by its link again")


def _buttons(does: Literal["consent", "begin", "withdraw"], *choices: tuple[str, str]) -> Html:
    return tag(
        "form",
        *(
            tag(
                "button",
                text,
                type="submit",
                value=value,
                class_=None if at else "primary",
                disabled=True,  # until its script is there: else the browser would lose the address
            )
            for at, (value, text) in enumerate(choices)
        ),
        data_does=does,
        class_="next",
    )


def _questions(one: Questionnaire, step: Step, name: str) -> Sequence[Node]:
    items = one.items
    return (
        _prose(one.text) if one.text else None,
        tag(
            "form",
            *(_question(item) for item in items),
            tag(
                "div",
                tag(
                    "span", f"{len(items)} questions", id="answered", role="status", class_="quiet"
                ),
                tag("button", "Continue", type="submit", class_="primary", disabled=True),
                class_="next",
            ),
            data_does="answers",
            data_questionnaire=one.name,
            data_place=step.place,
            data_owner=name,
            autocomplete="off",
        ),
    )


def _question(item: Item) -> Html:
    legend: list[Node] = [tag("b", item.title), " "] if item.title else []
    must = tag("span", " (required)", class_="quiet") if item.required else None
    if item.type in ("number", "text"):
        what = f"item-{item.name}"
        if item.type == "text":
            field = tag("textarea", "", id=what, name=item.name, rows=4, required=item.required)
        else:
            field = tag(
                "input",
                id=what,
                name=item.name,
                type="number",
                min=item.low,
                max=item.high,
                step="any",
                required=item.required,
            )
        label = tag("label", *legend, item.text, must, for_=what)
        return tag("div", label, field, class_="item", data_item=item.name, data_type=item.type)
    scale = item.type == "scale"
    values = [str(point) for point in item.points] if scale else list(item.choices)
    fine = scale and len(values) > 11
    options = [
        tag(
            "label",
            tag("input", type="radio", name=item.name, value=value, required=item.required),
            tag("span", value, class_="unseen" if fine else None),
        )
        for value in values
    ]
    poles = None
    if scale and item.labels:
        ends = [tag("span", label) for label in item.labels]
        poles = tag("div", *ends, class_="poles")
    return tag(
        "fieldset",
        tag("legend", *legend, item.text, must),
        tag("div", *options, class_="fine" if fine else "scale" if scale else "choices"),
        poles,
        class_="item",
        data_item=item.name,
        data_type=item.type,
    )
