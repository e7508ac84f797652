"""The fitted rules file: it can be written and read back; other files are refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog.agents.rules_file import FittedRules, Fitting, read_rules, rules_text
from duolog.engine.errors import InvalidInput
from duolog.scoring.control_rules import ControlRules

FITTED = FittedRules(
    rules=ControlRules(least=4, first="follow", keep=1, enough=0.85, measure="seconds"),
    fitted=Fitting(
        task="travel",
        scorer="travel@1",
        duolog="0.1.0",
        users=("proactive", "lazy"),
        seeds=(1, 2),
        sessions=3,
        trials=8,
        optimiser="optuna 4.9.0, TPE",
        seed=0,
        drop=0.1,
        price=0.005,
        score=0.0123,
        utility={"proactive": 0.9, "lazy": 0.75},
    ),
)


def test_a_file_holds_the_rules_and_how_they_were_fitted(tmp_path: Path) -> None:
    path = tmp_path / "trips.toml"
    path.write_text(rules_text(FITTED), encoding="utf-8")
    assert read_rules(path, task="travel") == FITTED
    assert "seeds = [1, 2]\n" in path.read_text(encoding="utf-8")


def test_rules_may_be_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[rules]\nfirst = "ask"\n', encoding="utf-8")
    assert read_rules(path, task="anything") == FittedRules(rules=ControlRules(first="ask"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot read .*: No such file"),
        (b"\xff\xfe", "cannot read .*: it is not UTF-8"),
        (b"rules = ", ".*trips.toml is not TOML: "),
        (b"least = 3", "missing required field `rules`|unknown key 'least'"),
        (b"[rules]\nleest = 3", "unknown key 'leest'"),
        (b"[rules]\nleast = -3", "out of range"),
        (b"[rules]\nshow = -1", "out of range"),
        (b"[rules]\nasks = -1", "out of range"),
        (b'[rules]\nmeasure = "sweat"', "unknown measure of effort 'sweat'"),
        (rules_text(FITTED).encode(), "were fitted on travel, not on data"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: bytes | None, why: str) -> None:
    path = tmp_path / "trips.toml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(InvalidInput, match=why) as raised:
        read_rules(path, task="data")
    assert "\n" not in str(raised.value)
