"""The part of Duolog's environment that an external agent's program inherits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...engine.errors import InvalidInput

__all__ = ("check_names", "surroundings")

_PASSED: Final = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM TMPDIR TEMP TMP PWD "
    "XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS LD_LIBRARY_PATH "
    "SYSTEMROOT SYSTEMDRIVE COMSPEC PATHEXT WINDIR APPDATA LOCALAPPDATA USERPROFILE".split()
)
"""Variables that a program needs in order to run, and that do not contain secrets."""

_LOCALE: Final = "LC_"
_OWN: Final = "DUOLOG_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of variables that a user lets an agent have.

    Raises:
        InvalidInput: one of them is not a name, or Duolog's own.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"--agent-env expects the name of a variable, such as OPENAI_API_KEY, got {name!r}"
            )
        if name.upper().startswith(_OWN):
            raise InvalidInput(
                f"--agent-env {name}: no agent gets Duolog's own settings, which hold its token"
            )
    return tuple(names)


def surroundings(
    names: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of an agent's program.

    Args:
        names: of variables that it gets in addition to what every program needs.
        environ: that they are taken from; None for this process's own.
    """
    given = os.environ if environ is None else environ
    wanted = _PASSED | set(names)
    return {
        name: value
        for name, value in given.items()
        if (name in wanted or name.startswith(_LOCALE)) and not name.upper().startswith(_OWN)
    }
