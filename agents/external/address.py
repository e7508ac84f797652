"""The address of an external agent (``openai:URL``, ``acp:COMMAND`` or ``exec:COMMAND``) and its short name."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, cast, final
from urllib.parse import urlsplit

import msgspec

from ...engine.errors import InvalidInput
from ...engine.redaction import is_secret_name, redact

__all__ = (
    "USUAL_TERMS",
    "Address",
    "ExternalTerms",
    "check_command",
    "names_external",
    "read_address",
)

Protocol: TypeAlias = Literal["openai", "acp", "exec"]

_FORM = re.compile(
    r"(?:(?P<name>[^=:\s]+)=)?(?P<protocol>openai|acp|exec):(?P<target>.*)\Z", re.DOTALL
)
_NAME = re.compile(r"[\w.-]+\Z")
_OPTION = re.compile(r"(?:^|\s)-{1,2}([\w.-]+)[ =]")
_UNFIT = re.compile(r"[^\w.]+")
_RUNNERS = re.compile(
    r"(?:python|node|bash|sh|ruby|perl|deno|bun|npx|uvx|uv|env|nice|timeout)[\d.]*\Z"
)
_SCRIPT = re.compile(r"[^-].*\.\w{1,4}\Z|[^-].*/.*")


@final
class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The location of an external agent, and the protocol for talking to it.

    Attributes:
        text: the address as given; it is recorded, and a fork reads it again.
        name: the agent's kind in logs and reports.
        protocol: ``openai``, ``acp`` or ``exec``.
        command: of ``acp`` and ``exec``: the program and its arguments; empty otherwise.
        url: of ``openai``: the base URL, which ends before ``/chat/completions``; empty otherwise.
        model: of ``openai``: the requested model.
    """

    text: str
    name: str
    protocol: Protocol
    command: tuple[str, ...] = ()
    url: str = ""
    model: str = ""


class ExternalTerms(NamedTuple):
    """How external agents are run.

    Attributes:
        timeout: seconds that one has for a turn; None for the default.
        env: names of the environment variables that its program gets in addition to what every program needs.
    """

    timeout: float | None = None
    env: tuple[str, ...] = ()


USUAL_TERMS: Final = ExternalTerms()
"""How external agents are run unless a user says otherwise."""


def names_external(name: str) -> bool:
    """Whether a name is the address of an external agent."""
    return _FORM.match(name) is not None


def read_address(text: str) -> Address:
    """Reads ``[NAME=]openai:URL[#MODEL]``, ``[NAME=]acp:COMMAND`` or ``[NAME=]exec:COMMAND``.

    Raises:
        InvalidInput: it is none of them, or holds a secret.
    """
    found = _FORM.match(text)
    if found is None:
        raise InvalidInput(
            f"{text!r} is not an agent address; write openai:URL, acp:COMMAND or exec:COMMAND"
        )
    if redact(text) != text or any(map(is_secret_name, _OPTION.findall(text))):
        raise InvalidInput(
            f"the agent address that begins with {text[:20]!r} holds "
            "what looks like a secret, and addresses are recorded; pass the secret in the agent's environment"
        )
    name, protocol, target = found["name"], cast("Protocol", found["protocol"]), found["target"]
    if name is not None and not _NAME.match(name):
        raise InvalidInput(
            f"{name!r} is not a valid agent name; use letters, digits, '.', '_' and '-'"
        )
    if protocol == "openai":
        return _endpoint(text, name, target)
    try:
        command = tuple(shlex.split(target))
    except ValueError as error:
        raise InvalidInput(f"{text!r} cannot be read as a shell would: {error}") from None
    if not command:
        raise InvalidInput(f"{text!r} lacks a program; write it as {protocol}:COMMAND")
    return Address(
        text=text,
        name=name or f"{protocol}-{_program(command)}",
        protocol=protocol,
        command=command,
    )


def check_command(command: tuple[str, ...]) -> None:
    """Checks that there is such a program, before a session needs it.

    Raises:
        InvalidInput: there is none, or it cannot be executed.
    """
    if shutil.which(command[0]) is None:
        raise InvalidInput(f"no executable program {command[0]!r}")


def _endpoint(text: str, name: str | None, target: str) -> Address:
    url, _, model = target.partition("#")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(f"{text!r} lacks a URL; write it as openai:http://HOST:PORT/v1#MODEL")
    if parts.query or parts.username is not None:
        raise InvalidInput(f"the URL in {text!r} may hold neither a query nor a user")
    where = "-".join(str(part) for part in (host, port, model) if part)
    url = url.rstrip("/").removesuffix("/chat/completions")
    return Address(
        text=text,
        name=name or f"openai-{_UNFIT.sub('-', where)}",
        protocol="openai",
        url=url,
        model=model or "default",
    )


def _program(command: tuple[str, ...]) -> str:
    """The name of a command: the script rather than its interpreter."""
    first = Path(command[0])
    if _RUNNERS.match(first.name):
        for part in command[1:]:
            if _SCRIPT.match(part):
                return _UNFIT.sub("-", Path(part).stem)
    return _UNFIT.sub("-", first.stem)
