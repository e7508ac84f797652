"""Exports from the pages: lists as CSV and JSON, a session as JSON Lines, by role."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from duolog.engine.events import NoteTaken
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.scoring.reviews import Review, add_review
from duolog.testing.sessions import put_records
from markdown_it import MarkdownIt
from workbench import story, visiting


async def test_a_list_is_exported_with_all_of_its_pages_and_filters() -> None:
    async with open_log("memory://") as log:
        for number in range(60):
            await put_records(log, story(f"s{number}", [1]).records)
        await add_review(log, "s7", "anna", Review(tags=("odd", "slow"), rating=2))
        async with visiting(log, "viewer") as viewer:
            answer = await viewer.get("/v1/export/sessions", format="csv", sort="session")
            assert "attachment" in answer.headers["Content-Disposition"]
            rows = list(csv.DictReader(io.StringIO(answer.text)))
            assert [row["session"] for row in rows] == [f"s{number}" for number in range(60)]
            assert (rows[7]["tags"], rows[7]["rated"]) == ("odd;slow", "2.0")
            found = (await viewer.get("/v1/export/sessions", format="json", tag="odd")).json()
            assert [one["session"] for one in found] == ["s7"]
            assert (await viewer.get("/v1/export/sessions", format="xls")).status_code == 400
            assert (
                "/v1/export/sessions?sort=session&amp;format=csv"
                in (await viewer.get("/sessions", sort="session")).text
            )
        async with visiting(log, "participant") as participant:
            assert (await participant.get("/v1/export/sessions")).status_code == 403
            assert (await participant.get("/v1/export/session", id="s1")).status_code == 403


async def test_a_session_is_exported_as_far_as_its_reader_may_see_it() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("s", [1]).records)
        await log.append("s", [Draft(NoteTaken("a private note"), "bot", "agent", 99.0)])
        for role, sees in (("operator", True), ("viewer", False)):
            async with visiting(log, role) as visitor:
                answer = await visitor.get("/v1/export/session", id="s")
                lines = [json.loads(line) for line in answer.text.splitlines()]
                assert len(lines) == log.statistics().position
                assert ("a private note" in answer.text) == sees
                assert (await visitor.get("/v1/export/session", id="x")).status_code == 404


async def test_a_session_is_exported_as_a_transcript_and_as_json() -> None:
    async with open_log("memory://") as log:
        script = story("s", [1])
        script.agent("<script>alert(1)</script>\n# Not a heading")
        script.agent(
            "![look](https://evil.example/a.png) ![b][c]\n\n[c]: https://evil.example/c.png"
        )
        await put_records(log, script.records)
        await log.append("s", [Draft(NoteTaken("a private note"), "bot", "agent", 99.0)])
        for role, sees in (("operator", True), ("viewer", False)):
            async with visiting(log, role) as visitor:
                answer = await visitor.get("/v1/export/session", id="s", format="md")
                assert answer.headers["Content-Type"].startswith("text/markdown")
                text = answer.text
                assert text.startswith("# test 1\n")
                assert "## Round 1" in text
                assert "> &lt;script>alert(1)&lt;/script>\n> # Not a heading" in text
                assert "<img" not in (shown := MarkdownIt().render(text))
                assert "<a " not in shown
                assert "evil.example" in shown
                assert ("a private note" in text) == sees
                found = (await visitor.get("/v1/export/session", id="s", format="json")).json()
                assert len(found) == log.statistics().position
                refused = await visitor.get("/v1/export/session", id="s", format="pdf")
                assert refused.status_code == 400
                assert "md" in refused.text


async def test_a_comparison_is_exported_as_its_document() -> None:
    async with open_log("memory://") as log:
        for number in range(4):
            script = story(f"s{number}", [4])
            await put_records(log, script.records)
        async with visiting(log, "viewer") as viewer:
            text = (await viewer.get("/v1/export/report", format="md")).text
            assert text.startswith("|")
            assert (await viewer.get("/v1/export/report", format="json")).json()["groups"]
            rows = csv.DictReader(
                io.StringIO((await viewer.get("/v1/export/report", format="csv")).text)
            )
            assert [row["sessions"] for row in rows] == ["4"]
            assert (await viewer.get("/v1/export/report", format="pdf")).status_code == 400
            refused = await viewer.get("/v1/export/report", agents="nobody")
            assert refused.status_code == 400
            assert "/v1/export/report?format=md" in (await viewer.get("/compare")).text
        async with visiting(log, "participant") as participant:
            assert (await participant.get("/v1/export/report")).status_code == 403


async def test_a_damaged_record_ends_no_export_and_is_withheld_from_viewers(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await put_records(log, story("s", [1]).records)
        await log.append("s", [Draft(NoteTaken("a private note"), "bot", "agent", 99.0)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER events_stand")
        body = '{"kind":"NoteTaken","text":7,"more":"a private note"}'
        connection.execute(
            "UPDATE events SET crc = NULL, body = CAST(? AS BLOB) WHERE kind = 'NoteTaken'", (body,)
        )
        connection.commit()
    async with open_log(str(path)) as log:
        for role in ("operator", "viewer"):
            async with visiting(log, role) as visitor:
                lines = (await visitor.get("/v1/export/session", id="s")).text.splitlines()
                assert len([json.loads(line) for line in lines]) == log.statistics().position
                text = (await visitor.get("/v1/export/session", id="s", format="md")).text
                assert "## Round 1" in text
                if role == "viewer":
                    assert not any("a private note" in one for one in (*lines, text))
