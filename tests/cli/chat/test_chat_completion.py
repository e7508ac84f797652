"""How a command is completed as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog.cli.chat.completion import complete
from duolog.engine.session.environment import ActionSpec
from duolog.users.person_commands import COMMANDS

ACTIONS = {
    name: ActionSpec(
        name=name,
        description="",
        parameters={"properties": {"origin": {}, "date": {}}},
    )
    for name in ("SearchFlights", "SearchHotels", "Book")
}


@pytest.mark.parametrize(
    ("line", "longer"),
    [
        ("/ra", "/rate "),
        ("/e", "/edit "),
        ("/", "/"),
        ("/do S", "/do Search"),
        ("/do SearchF", "/do SearchFlights "),
        ("/do Book o", "/do Book origin="),
        ("/do Book origin=Rome d", "/do Book origin=Rome date="),
        ("/do Nothing o", "/do Nothing o"),
        ("/nothing", "/nothing"),
        ("rate", "rate"),
        ("/rate 3 wh", "/rate 3 wh"),
        ("a\n/ra", "a\n/ra"),
    ],
)
def test_as_much_is_added_as_is_certain(line: str, longer: str) -> None:
    assert complete(line, ACTIONS).extend(line) == longer


def test_a_slash_offers_all_commands_and_a_command_says_what_it_does() -> None:
    assert list(complete("/", {}).words) == [command.name for command in COMMANDS]
    assert complete("/rate ", {}).hint.startswith("/rate 1..5 [WHY]: rate the progress")


def test_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "one.txt").touch()
    (tmp_path / ".hidden").touch()
    line = f"/submit {tmp_path}/"
    assert complete(line, {}).extend(line) == f"{line}plans/"
    assert complete(f"{line}plans/", {}).extend(f"{line}plans/") == f"{line}plans/one.txt "
    assert complete("/submit /nowhere/at/all/", {}).words == ()
    assert complete(f"{line}.h", {}).words == [f"{tmp_path}/.hidden"]
