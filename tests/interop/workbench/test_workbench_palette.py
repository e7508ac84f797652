"""The command palette finds sessions by the beginning of their ids and titles."""

from __future__ import annotations

from duolog.engine.log.open import open_log
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from workbench import visiting


async def test_sessions_are_found_by_the_beginning_of_id_or_title_the_latest_first() -> None:
    async with open_log("memory://") as log:
        for name in ("menu-1", "menu-2", "other"):
            script = RecordWriter(name)
            script.opened(config={"group": {"agent": "auto"}})
            await put_records(log, script.records)
        async with visiting(log, "viewer") as viewer:

            async def found(begin: str) -> list[str]:
                data = await viewer.data("/v1/sessions/named", begin=begin)
                return [one["id"] for one in data["sessions"]]

            assert await found("MENU") == ["menu-2", "menu-1"]
            assert await found("test") == ["other", "menu-2", "menu-1"]  # of the task "test"
            assert await found("enu") == []
            assert await found("") == []
            [one] = (await viewer.data("/v1/sessions/named", begin="other"))["sessions"]
            assert one == {"name": "test 1 · auto", "id": "other", "to": "/session?id=other"}
            assert 'id="palette"' in (await viewer.get("/sessions")).text
        async with visiting(log, "participant") as participant:
            assert (await participant.get("/v1/sessions/named", begin="menu")).status_code == 403
