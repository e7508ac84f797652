"""Whole directories: mixed, of one format, and with unknown files."""

from __future__ import annotations

import json
from pathlib import Path

import duolog
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, SessionOpened
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.cogym.runs import CogymImporter
from duolog.interop.importers.directory import DirectoryImporter
from duolog.interop.importers.registry import recognise
from duolog.interop.importers.run import import_foreign
from foreign_logs import collaboration, read, write_run

CHAT = {"messages": [{"role": "user", "content": "Hello"}]}
SHARED = [{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ha"}]}]


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_each_file_of_a_mixed_directory_is_recognised_by_itself(tmp_path: Path) -> None:
    write(tmp_path / "a" / "chat.json", CHAT)
    write(tmp_path / "b.json", SHARED)
    write(tmp_path / "c.json", {"what": "is this"})
    write(tmp_path / ".hidden" / "chat.json", CHAT)
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert recognise(tmp_path) is None
    importer = DirectoryImporter()
    assert importer.recognises(tmp_path, None)
    events, diagnostics = read(importer, tmp_path)
    assert len({one.session for one in events}) == 2
    assert [(diagnostic.kind, diagnostic.where) for diagnostic in diagnostics] == [
        ("difference", str(tmp_path / "c.json"))
    ]


def test_results_that_are_a_directory_are_taken_beside_files_of_other_formats(
    tmp_path: Path,
) -> None:
    write_run(tmp_path / "runs" / "env_trip_1", collaboration())
    assert getattr(recognise(tmp_path), "name", None) == "cogym"
    write(tmp_path / "runs" / "chat.json", CHAT)
    write(tmp_path / "b.json", SHARED)
    assert recognise(tmp_path) is None
    events, diagnostics = read(DirectoryImporter(), tmp_path)
    tasks = {one.draft.event.task for one in events if isinstance(one.draft.event, SessionOpened)}
    assert {"chat", "sharegpt"} < tasks
    assert len(tasks) == 3
    assert [one for one in diagnostics if one.kind == "problem"] == []


def test_a_file_that_cannot_be_read_is_a_problem_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "a.json", CHAT)
    (tmp_path / "b.json").write_text("no JSON", encoding="utf-8")
    events, [diagnostic] = read(DirectoryImporter(ChatImporter()), tmp_path)
    assert len({one.session for one in events}) == 1
    assert (diagnostic.kind, diagnostic.where) == ("problem", str(tmp_path / "b.json"))


def test_a_directory_without_anything_to_import_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds nothing that can be imported"):
        read(DirectoryImporter(), tmp_path)


@pytest.mark.asyncio
async def test_two_files_with_one_session_id_are_not_mixed(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"id": "s", **CHAT})
    other = {"id": "s", "messages": [{"role": "user", "content": "Another"}]}
    write(tmp_path / "b.json", other)
    write(tmp_path / "c.json", {"id": "t", **CHAT})
    async with duolog.open("memory://") as log:
        taken = await import_foreign(log, tmp_path, DirectoryImporter())
        alone = await import_foreign(log, tmp_path / "b.json", ChatImporter(), keep_going=True)
        texts = [
            record.event.text
            async for record in log.read("s")
            if isinstance(record.event, MessageSent)
        ]
    assert texts == ["Hello"]
    assert (taken.records, taken.known) == (6, 0)
    assert [one.session for one in taken.diagnostics] == ["s-b"]
    assert (alone.records, alone.known) == (0, 1)
    [problem] = alone.diagnostics
    assert problem.session == "s"
    assert "the log has another MessageSent at version 2" in problem.what


@pytest.mark.asyncio
@pytest.mark.parametrize("before", ["Use ", "Use this:\n", 'Use\t"'])
async def test_keys_that_stand_in_a_source_do_not_reach_the_log(
    tmp_path: Path, before: str
) -> None:
    key = "ghp_" + "a1B2" * 9
    said = {"messages": [{"role": "user", "content": f"{before}{key} for token = next(tokens)"}]}
    source = write(tmp_path / "chat.json", said)
    async with duolog.open("memory://") as log:
        first = await import_foreign(log, source, ChatImporter())
        again = await import_foreign(log, source, ChatImporter())
        bodies = [record.body or b"" async for record in log.read_all()]
    assert (first.records, again.known) == (2, 2)
    assert not any(key.encode() in body for body in bodies)
    assert any(b"[removed] for token = next(tokens)" in body for body in bodies)


@pytest.mark.asyncio
async def test_two_sessions_of_one_name_in_several_files_are_two(tmp_path: Path) -> None:
    def thread(text: str, *more: str) -> dict[str, object]:
        said = [{"role": "user", "content": one} for one in (text, *more)]
        return {"id": "1", "messages": said}

    write(tmp_path / "a.json", thread("Hello", "again"))
    write(tmp_path / "b.json", thread("Goodbye"))
    write(tmp_path / "c.json", thread("Hello"))
    write(tmp_path / "d.json", thread("Hello", "again", "and more"))
    importer = DirectoryImporter()
    async with duolog.open("memory://") as log:
        taken = await import_foreign(log, tmp_path, importer)
        texts = {
            summary.session: [
                record.event.text
                async for record in log.read(summary.session)
                if isinstance(record.event, MessageSent)
            ]
            async for summary in log.sessions()
        }
        again = await import_foreign(log, tmp_path, importer)
    assert texts == {"1": ["Hello", "again", "and more"], "1-b": ["Goodbye"]}
    assert again.records == 0
    assert importer.name == "chat"
    [note] = taken.diagnostics
    assert "another session is called '1' in" in note.what


def test_a_link_leads_to_no_file_outside_of_the_directory(tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere" / "private.json", CHAT)
    root = tmp_path / "mine"
    write(root / "chat.json", {"messages": [{"role": "user", "content": "Mine"}]})
    (root / "link.json").symlink_to(secret)
    (root / "folder").symlink_to(secret.parent)
    (root / "proc").symlink_to("/proc")
    (root / "again.json").symlink_to(root / "chat.json")
    for importer in (DirectoryImporter(), DirectoryImporter(ChatImporter()), ChatImporter()):
        events, _ = read(importer, root)
        said = {one.draft.event.text for one in events if isinstance(one.draft.event, MessageSent)}
        assert said == {"Mine"}
    assert recognise(root / "link.json") is not None  # a source that is named is read


def test_files_of_one_result_are_not_taken_from_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "event_log.jsonl"
    write_run(secret.parent, collaboration())
    run = tmp_path / "results" / "env_trip_1"
    run.mkdir(parents=True)
    (run / "event_log.jsonl").symlink_to(secret)
    with pytest.raises(InvalidInput, match="is not a result"):
        read(CogymImporter(), tmp_path / "results")
