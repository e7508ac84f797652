"""Labels that a person gives to imported sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.engine.events import SessionOpened
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.cogym.runs import CogymImporter
from duolog.interop.importers.labels import LabelledImporter, Labels, labels_from
from duolog.testing import check_importer
from foreign_logs import collaboration, read, write_lines, write_run

Json = dict[str, Any]
Capture = pytest.CaptureFixture[str]

CHAT: Json = {
    "messages": [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "There."},
    ]
}


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "chat.jsonl", [CHAT])


def opening(source: Path, labels: Labels) -> SessionOpened:
    importer = CogymImporter() if source.is_dir() else ChatImporter()
    found, _ = read(LabelledImporter(importer, labels), source)
    opened = found[0].draft.event
    assert isinstance(opened, SessionOpened)
    return opened


def test_labels_reach_the_report(chat: Path, tmp_path: Path, capsys: Capture) -> None:
    log = str(tmp_path / "log.db")
    given = ("agent=helper-2", "task=support", "instance=17", "team=a = b")
    labels = [word for label in given for word in ("--label", label)]
    assert main(["import", str(chat), "--log", log, *labels]) == 0
    assert main(["report", log, "--group-by", "agent,task,team", "--json"]) == 0
    [group] = json.loads(capsys.readouterr().out)["groups"]
    assert group["group"] == {"agent": "helper-2", "task": "support", "team": "a = b"}


def test_what_a_person_says_counts_and_what_the_source_said_is_kept(tmp_path: Path) -> None:
    source = write_run(tmp_path / "arm" / "env_trip_7", collaboration())
    before = opening(source, Labels())
    opened = opening(source, Labels(task="travel", instance="8", group={"agent": "x", "team": "a"}))
    assert (opened.task, opened.instance) == ("travel", "8")
    assert opened.config["group"] == {"agent": "x", "team": "a"}
    assert opened.config["imported"] == {
        "format": "cogym",
        "zone": "UTC",
        "said": {"task": "trip", "instance": "7"},
    }
    assert opened.participants == before.participants
    only = opening(source, Labels(group={"team": "a"}))
    assert only.config["group"] == {"agent": "an_agent (arm)", "team": "a"}
    assert only.config["imported"] == before.config["imported"]


def test_a_label_that_the_source_says_alike_changes_nothing(tmp_path: Path) -> None:
    source = write_run(tmp_path / "arm" / "env_trip_7", collaboration())
    assert opening(source, Labels(task="trip", instance="7")) == opening(source, Labels())


async def test_the_contract_of_importers_is_kept(chat: Path) -> None:
    await check_importer(LabelledImporter(ChatImporter(), Labels(group={"agent": "x"})), chat)


def test_without_labels_there_are_none() -> None:
    assert labels_from([]) is None
    assert labels_from(["a=b"]) == Labels(group={"a": "b"})
    assert labels_from(["task=t", "instance=7"]) == Labels(task="t", instance="7")


@pytest.mark.parametrize("text", ["team", "=a", "team=", " = ", ""])
def test_a_label_has_a_key_and_a_value(text: str) -> None:
    with pytest.raises(InvalidInput, match="--label expects key=value"):
        labels_from([text])


def test_labels_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        labels_from(["task=b", "task=c"])


def test_other_labels_for_the_same_sessions_are_refused(
    chat: Path, tmp_path: Path, capsys: Capture
) -> None:
    log = str(tmp_path / "log.db")
    for _ in range(2):
        assert main(["import", str(chat), "--log", log, "--label", "agent=x"]) == 0
    assert main(["import", str(chat), "--log", log, "--label", "agent=y"]) == 2
    assert "the log has another SessionOpened" in capsys.readouterr().err


def test_records_of_duolog_take_no_labels(chat: Path, tmp_path: Path, capsys: Capture) -> None:
    log, lines = str(tmp_path / "log.db"), str(tmp_path / "lines.jsonl")
    assert main(["import", str(chat), "--log", log]) == 0
    assert main(["export", log, "--output", lines]) == 0
    capsys.readouterr()
    copy = tmp_path / "copy.db"
    assert main(["import", lines, "--log", str(copy), "--label", "agent=x"]) == 2
    assert capsys.readouterr().err.startswith("duolog: jsonl comes in exactly as it was exported")
    assert not copy.exists()
