"""Pages of the workbench over connections that are slow, break, and hang; and clients that read nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import anyio
import pytest
from bad_network import bad_network
from browser import SharedBrowser, Watched, needs_browser, shares_browser
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.interop.workbench.state import WorkbenchLimits
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from playwright.async_api import Page, expect
from workbench import SECRET, visiting, working

QUICK = WorkbenchLimits(heartbeat=0.2)
ALL_OF_IT = """async () => {
  const found = [];
  for (const part of document.querySelectorAll('#entries .part')) {
    part.scrollIntoView();
    while (!part.querySelector('article')) await new Promise((next) => setTimeout(next, 20));
    found.push(...[...part.querySelectorAll('article')].map((one) => Number(one.dataset.i)));
  }
  return found;
}"""


def talk(rounds: int, name: str = "long") -> RecordWriter:
    script = RecordWriter(name)
    script.opened(clock="virtual", config={"judge": "judge", "utility": "u"})
    for number in range(1, rounds + 1):
        script.human(f"word {number}")
        script.scored(min(number / 200, 1), snapshot=script.output(f"line {number}"))
        script.agent("an answer")
    return script


def counted(records: Sequence[Record]) -> str:
    """How many records there are, as the page says it."""
    acts = sum(record.stream == TRACE for record in records)
    return f"{acts} records, {len(records) - acts} measurements"


async def put(log: EventLog, records: Iterable[Record]) -> None:
    for record in records:
        await put_records(log, [record])


async def stands(page: Page, state: str) -> None:
    await page.wait_for_selector(f"#connection[data-state={state}]")


@pytest.mark.slow
@needs_browser
@shares_browser
async def test_a_session_over_a_bad_connection_shows_each_record_once(
    browser: SharedBrowser,
) -> None:
    records = talk(150).records
    async with open_log("memory://") as log:
        await put(log, records[:20])
        async with working(log, limits=QUICK) as (_, port), bad_network(port) as network:
            page = await browser.new_page()
            await page.goto(f"http://127.0.0.1:{network.port}/session?id=long#token={SECRET}")
            await stands(page, "live")

            network.rate = 100_000.0  # slow
            await put(log, records[20:60])
            await expect(page.locator("#records")).to_have_text(counted(records[:60]))
            network.drop()  # ended, and answers that break off when it is back
            network.break_after = [900, 100]
            await put(log, records[60:80])
            await expect(page.locator("#records")).to_have_text(counted(records[:80]))
            network.stall()  # it hangs silently
            await put(log, records[80:100])
            await stands(page, "lost")
            assert "offline" in await page.inner_text("#connection")
            network.mend()
            await expect(page.locator("#records")).to_have_text(counted(records[:100]))
            network.cut()  # away for long: more comes than one message holds
            await stands(page, "lost")
            await put(log, records[100:])
            network.rate = None
            network.mend()
            total = counted(records)
            await expect(page.locator("#records")).to_have_text(total)
            await stands(page, "live")
            assert await page.evaluate(ALL_OF_IT) == list(range(1, len(records) + 1))


@pytest.mark.slow
@needs_browser
@shares_browser
async def test_the_list_over_a_bad_connection_shows_each_session_once(
    browser: SharedBrowser,
) -> None:
    async with open_log("memory://") as log:
        for number in range(5):
            await put_records(log, talk(2, f"s-{number}").records)
        async with working(log, limits=QUICK) as (_, port), bad_network(port) as network:
            watched = Watched(await browser.new_page())
            page = watched.page
            await page.goto(f"http://127.0.0.1:{network.port}/sessions#token={SECRET}")
            await stands(page, "live")
            await page.fill("#f-q", "what is typed stays")
            for number, harm in enumerate((network.drop, network.stall, network.cut), start=5):
                network.break_after = [2000]
                harm()
                await put_records(log, talk(number, f"s-{number}").records)
                if harm != network.drop:
                    await stands(page, "lost")
                network.mend()
                row = page.locator(f"tr[data-session='s-{number}'][data-measured] svg").first
                await row.wait_for()
            rows = await page.locator("#rows tr").evaluate_all(
                "rs => rs.map(r => r.dataset.session)"
            )
            assert rows == [f"s-{number}" for number in reversed(range(8))]
            assert await page.input_value("#f-q") == "what is typed stays"
            assert not [one for one in watched.complaints if "Failed to load" not in one]


class Deaf:
    """A client over ASGI that takes nothing, until it is ready to."""

    def __init__(self) -> None:
        self.ready = anyio.Event()
        self.bodies: list[str] = []
        self._heard = anyio.Event()

    async def hears(self, position: int) -> None:
        """Waits for a message that goes up to a position."""
        while not any(_reaches(body, position) for body in self.bodies):
            self._heard = anyio.Event()
            await self._heard.wait()

    async def send(self, message: dict[str, object]) -> None:
        body = message.get("body", b"")
        assert isinstance(body, bytes)
        if b"data:" in body:
            await self.ready.wait()
            self.bodies.append(body.decode())
            self._heard.set()


@pytest.mark.parametrize("path", ["/v1/session/stream", "/v1/sessions/stream", "/v1/live/stream"])
async def test_nothing_is_queued_for_a_viewer_who_reads_nothing(path: str) -> None:
    """The server does not buffer for slow viewers; they catch up from their last position."""
    records = talk(600).records
    async with open_log("memory://") as log:
        await put_records(log, records[:10])
        async with visiting(log, "viewer", limits=WorkbenchLimits(pace=0.001)) as visitor:
            deaf = Deaf()
            app = visitor.client._transport.app  # type: ignore[attr-defined]
            cookies = "; ".join(f"{k}={v}" for k, v in visitor.client.cookies.items())
            scope = {
                "type": "http",
                "method": "GET",
                "path": path,
                "query_string": b"session=long&since=5",
                "headers": [(b"host", b"127.0.0.1:8730"), (b"cookie", cookies.encode())],
                "client": ("127.0.0.1", 1),
            }

            async def receive() -> dict[str, str]:
                await anyio.sleep_forever()
                raise AssertionError

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app, scope, receive, deaf.send)
                for start in range(10, len(records), 100):
                    await put_records(log, records[start : start + 100])
                    await anyio.sleep(0.005)
                deaf.ready.set()
                with anyio.fail_after(120):
                    await deaf.hears(records[-1].position)
                tasks.cancel_scope.cancel()
    assert len(deaf.bodies) <= 4 + len(records) // 400


def _reaches(body: str, position: int) -> bool:
    """Whether a message goes up to a position."""
    ident = re.search(r"^id: (\d+)$", body, re.MULTILINE)
    data = re.search(r"^data: (.*)$", body, re.MULTILINE)
    assert data
    json.loads(data[1])
    return ident is not None and int(ident[1]) >= position
