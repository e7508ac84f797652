"""Personas by name: any number of one can be set, on the command line or in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.users.personas import PERSONAS, find_persona, plays, read_persona

FILE = """
base = "bounded"
memory = 3
attention = false
vague = 0.25
acts = true
"""


def test_numbers_are_set_behind_a_name() -> None:
    persona = find_persona("bounded+memory=3+vague=0.2+acts=true+attention=none+untold=2")
    assert persona.name == "bounded+memory=3+vague=0.2+acts=true+attention=none+untold=2"
    assert (persona.vague, persona.acts, persona.untold) == (0.2, True, 2)
    assert (persona.cognition.memory, persona.cognition.attention) == (3.0, None)
    assert persona.cognition.misreads == PERSONAS["bounded"].cognition.misreads


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("grumpy+vague=1", "unknown user 'grumpy'"),
        ("lazy+vague", "'vague' sets nothing; write e.g. lazy"),
        ("lazy+vage=1", "unknown key 'vage' in a persona; did you mean 'vague'"),
        ("lazy+vague=2", "vague expects a number from 0 to 1, got 2"),
        ("lazy+memory=0", "memory expects a number above 0, or none, got 0"),
        ("lazy+rating_noise=-1", "rating_noise expects a number from 0, got -1"),
        ("lazy+acts=maybe", "acts expects true or false, got maybe"),
        ("lazy+untold=1.5", "untold expects a whole number from 0, got 1.5"),
        ("lazy+vague=1+vague=0", "sets vague twice"),
        ("lazy+name=me", "unknown key 'name' in a persona"),
    ],
)
def test_what_cannot_be_set_is_one_clear_line(name: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        find_persona(name)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_is_the_name_that_sets_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tired.toml"
    path.write_text(FILE)
    assert read_persona(str(path)) == "bounded+acts=true+vague=0.25+attention=none+memory=3"
    path.write_text('base = "lazy"\nvague = 0.4')
    assert read_persona(str(path)) == "lazy"  # that is what it has


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("memory = 3", "base has to name a persona"),
        ('base = "lazy"\nvague = "often"', "vague expects a number from 0 to 1, got often"),
        ('base = "lazy', "is not TOML"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(content)
    with pytest.raises(InvalidInput) as refused:
        read_persona(str(path))
    assert str(refused.value).startswith((f"{path}:", f"{path} "))
    assert why in str(refused.value)


def test_a_user_plays_who_is_known_or_set_up_of_one_who_is() -> None:
    known = {"lazy": "", "mine": ""}
    assert plays("lazy", known)
    assert plays("lazy+vague=0.1", known)
    assert not plays("proactive+vague=0.1", known)
    with pytest.raises(InvalidInput):
        plays("lazy+vague=7", known)


def test_a_run_takes_them_and_a_report_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, path = str(tmp_path / "p.db"), tmp_path / "tired.toml"
    path.write_text('base = "lazy"\nmemory = 2')
    run = ["run", "travel", "--agents", "one-stage", "--sessions", "1", "--log", log]
    assert main([*run, "--users", f"lazy+vague=0,{path}"]) == 0
    capsys.readouterr()
    assert main(["report", log, "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert [one["group"]["user"] for one in groups] == ["lazy+memory=2", "lazy+vague=0"]
    assert main(["replay", log, "--check"]) == 0
    capsys.readouterr()
    assert main([*run, "--users", "lazy+vague=9"]) == 2
    assert "vague expects a number from 0 to 1, got 9" in capsys.readouterr().err
