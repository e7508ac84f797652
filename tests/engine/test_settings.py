"""Files of settings as only an attacker writes them: each is refused by its place before it is parsed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.settings import read_settings, settings_in

LEVELS = 32
WRITTEN = '''
title = "brackets [[[ and dots ... in a text"  # [[[[ a comment
literal = 'C:\\{{{'
many = """
[[[[ {{{{ "quoted" . . . .
""""
flat = [1.5, 2.5, 3.5, [1, [2, [3]]]]
a.b.c.d = { e = { f = 1 } }
[[table.inner."with.dot"]]
x = 0xff
'''


def test_what_people_write_is_read() -> None:
    text = WRITTEN + "".join(f"key{n} = {n}.{n}\n" for n in range(1000))
    assert settings_in(text, "x.toml") == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 20_000, "line 1: it nests deeper than 32 levels"),
        ("\nx = " + "{a=" * 20_000, "line 2: it nests deeper than 32 levels"),
        ("a" + ".a" * 200_000 + " = 1", "line 1: it nests deeper than 32 levels"),
        ("[" + "a . " * 20_000 + "a]", "line 1: it nests deeper than 32 levels"),
        ("x = " + "9" * 5000, "line 1: a number or a key has more than 1,000 characters"),
        ("x = 0x" + "f" * 5000, "line 1: a number or a key has more than 1,000 characters"),
        ("x = 1979-13-40", "is not TOML: "),
        ("x = ", "is not TOML: "),
        ('"""' * 100_001, "is not TOML: "),
    ],
)
def test_what_nobody_writes_is_refused_by_its_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=rf"\Ax.toml,? {said}"):
        settings_in(text, "x.toml")


@pytest.mark.parametrize("inner", [LEVELS, LEVELS + 1])
def test_levels_are_counted(inner: int) -> None:
    text = "x = " + "[" * inner + "]" * inner
    if inner <= LEVELS:
        settings_in(text, "x.toml")
        return
    with pytest.raises(InvalidInput, match="deeper than 32 levels"):
        settings_in(text, "x.toml")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, r"\Acannot read .*x.toml: No such file"),
        (b"x = '\xff'", r"\Acannot read .*x.toml: it is not UTF-8"),
        (b"#" * (2**20 + 1), r"x.toml is longer than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes | None, said: str) -> None:
    path = tmp_path / "x.toml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InvalidInput, match=said):
        read_settings(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the system has no such file")
def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="/dev/zero is longer than"):
        read_settings("/dev/zero")
