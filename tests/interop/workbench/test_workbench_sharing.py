"""Shared links: roles, expiry and revocation, on every route and stream."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, Participant
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.access.identity import Access, Identity
from duolog.interop.workbench.access.sharing import Links
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.routes import participation
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from workbench import BASE, SECRET, Visitor, story, visiting, working

ROUTES = (
    "/sessions",
    "/live",
    "/session?id=s",
    "/v1/sessions/rows?of=s",
    "/v1/session/index?session=s",
)


def guest(visitor: Visitor) -> httpx.AsyncClient:
    """A second browser without a cookie, at the same server."""
    transport = httpx.ASGITransport(visitor.client._transport.app)  # type: ignore[attr-defined]
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers={"Origin": BASE})


async def made(visitor: Visitor, role: str = "viewer", days: float = 1, name: str = "ben") -> str:
    answer = await visitor.post("/v1/links/make", {"role": role, "days": days, "name": name})
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


async def test_a_link_lets_in_by_its_role_until_it_is_revoked() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("s", [1]).records)
        async with visiting(log) as operator, guest(operator) as ben, guest(operator) as cleo:
            token = await made(operator)
            assert (await ben.get("/sessions")).status_code == 303
            entered = await ben.post("/enter", json={"token": token})
            assert entered.json()["role"] == "viewer"
            for route in ROUTES:
                assert (await ben.get(route)).status_code == 200, route
            body = {"sessions": ["s"], "by": "ben", "review": {"rating": 1}}
            assert (await ben.post("/v1/reviews/add", json=body)).status_code == 403
            assert (await ben.get("/v1/links")).status_code == 403
            assert (await ben.post("/v1/links/make", json={})).status_code == 403

            other = await made(operator, role="operator", name="cleo")
            assert (await cleo.post("/enter", json={"token": other})).json()["role"] == "operator"
            [link] = [one for one in await operator.workbench.links.listed() if one.name == "ben"]
            assert token not in (await operator.get("/v1/links")).text
            answer = await operator.post("/v1/links/revoke", {"id": link.id})
            assert answer.status_code == 200
            for route in ROUTES:
                assert (await ben.get(route)).status_code in (303, 401), route
            assert (await ben.post("/enter", json={})).status_code == 401
            assert (await ben.post("/enter", json={"token": token})).status_code == 401
            assert (await cleo.get("/sessions")).status_code == 200
            assert "revoked" in (await operator.get("/v1/links")).text


async def test_a_revocation_holds_for_other_servers_of_the_log_and_after_a_restart() -> None:
    async with open_log("memory://") as log:
        access = Access(SECRET)
        links = Links(access, log)
        link, token = await links.make(Identity("viewer"), 1)
        await links.revoke(link.id)
        await links.revoke(link.id)
        async with visiting(log, None) as visitor:
            refused = await visitor.post("/enter", {"token": token})
            assert refused.status_code == 401
            assert "revoked" in refused.text
        assert not (await log.verify()).problems


async def test_a_revocation_reaches_a_server_that_has_let_the_link_in() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("s", [1]).records)
        links = Links(Access(SECRET), log)
        link, token = await links.make(Identity("viewer"), 1)
        async with visiting(log, None) as visitor:
            assert (await visitor.post("/enter", {"token": token})).status_code == 200
            assert (await visitor.get("/sessions")).status_code == 200
            await links.revoke(link.id)
            assert (await visitor.get("/sessions")).status_code in (303, 401)
            assert (await visitor.post("/enter", {"token": token})).status_code == 401


async def test_links_end_and_cannot_be_guessed() -> None:
    now = 1_000_000.0
    access = Access(SECRET, now=lambda: now)
    links = Links(access, open_log("memory://"), now=lambda: now)
    pairs = [await links.make(Identity("viewer"), 2) for _ in range(100)]
    assert len({link.id for link, _ in pairs}) == 100
    assert all(len(link.id) >= 20 for link, _ in pairs)
    token = pairs[0][1]
    assert access.by_token(token) is not None
    data, _, mac = token.partition(".")
    for forged in (data, f"{pairs[1][1].partition('.')[0]}.{mac}", f"{data}.{'0' * len(mac)}"):
        assert access.by_token(forged) is None
        assert access.link_of(token=forged) == ""
    now += 2 * 86_400 + 1
    assert access.by_token(token) is None
    assert await links.listed() == []
    for days in (0, -1, 366, float("nan")):
        with pytest.raises(InvalidInput, match="365 days"):
            await links.make(Identity("viewer"), days)
    with pytest.raises(InvalidInput, match="60 characters"):
        await links.make(Identity("viewer"), 1, "x" * 61)


async def test_wrong_requests_are_refused_in_words() -> None:
    async with open_log("memory://") as log, visiting(log) as operator:
        for body in ({}, {"role": "participant", "days": 1}, {"role": "viewer", "days": "x"}):
            assert (await operator.post("/v1/links/make", body)).status_code == 400
        assert (await operator.post("/v1/links/revoke", {"id": "nothing"})).status_code == 400
    async with open_log("memory://") as log, visiting(log, read_only=True) as operator:
        body = {"role": "viewer", "days": 1}
        assert (await operator.post("/v1/links/make", body)).status_code == 403
        assert "show-share" not in (await operator.get("/sessions")).text


async def test_an_open_stream_of_a_revoked_link_sends_nothing_more() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("s", [1]).records)
        async with working(log) as (workbench, port):
            link, token = await workbench.links.make(Identity("viewer"), 1)
            base = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=base, headers={"Origin": base}) as ben:
                assert (await ben.post("/enter", json={"token": token})).status_code == 200
                url = "/v1/session/stream?session=s&since=0"
                seen = []
                async with ben.stream("GET", url) as stream:
                    async for line in stream.aiter_lines():
                        seen.append(line)
                        if line.startswith("event: grown"):
                            await workbench.links.revoke(link.id)
                            await log.append(
                                "s", [Draft(MessageSent("more"), "ann", "human", 99.0)]
                            )
                assert sum(line.startswith("event: grown") for line in seen) == 1


async def test_a_link_seats_one_person_in_an_open_session_and_is_revoked() -> None:
    closed = RecordWriter("c")
    closed.opened()
    closed.closed("finished")
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for script in (story("s", [1]), RecordWriter("p"), closed):
            if not script.records:
                script.opened(participants=(Participant(name="ben", role="human"),))
            await put_records(log, script.records)
        parts = (*PARTS, participation(SessionHost(log, tasks)))
        async with visiting(log, parts=parts) as operator, guest(operator) as ben:
            seats = (await operator.data("/v1/links"))["seats"]
            assert [(one["session"], one["actor"]) for one in seats] == [("p", "ben"), ("s", "ann")]
            body = {"role": "participant", "days": 1, "session": "p", "actor": "ben"}
            for wrong in ({"actor": "ann"}, {"session": "q"}, {"session": ""}):
                assert (await operator.post("/v1/links/make", body | wrong)).status_code == 400
            token = (await operator.post("/v1/links/make", body)).json()["token"]
            assert (await ben.post("/enter", json={"token": token})).json()["role"] == "participant"
            assert (await ben.get("/participate?id=p")).status_code == 200
            assert (await ben.get("/participate?id=s")).status_code == 403
            assert (await ben.get("/sessions")).status_code == 403
            [link] = await operator.workbench.links.listed()
            assert (await operator.post("/v1/links/revoke", {"id": link.id})).status_code == 200
            assert (await ben.get("/participate?id=p")).status_code in (303, 401)
        tasks.cancel_scope.cancel()


async def test_the_list_of_links_survives_a_restart_without_their_tokens(tmp_path: Path) -> None:
    path = tmp_path / "log.db.links"
    async with open_log("memory://") as log:
        links = Links(Access(SECRET), log, path)
        kept, token = await links.make(Identity("viewer"), 1, "ben")
        gone, _ = await links.make(Identity("operator"), 1)
        await links.revoke(gone.id)
        assert token not in path.read_text(encoding="utf-8")
        assert path.stat().st_mode & 0o077 == 0
        again = Links(Access(SECRET), log, path)
        found = {one.id: one for one in await again.listed()}
        assert {one.id: one.revoked for one in found.values()} == {kept.id: False, gone.id: True}
        assert (found[kept.id].name, found[kept.id].until) == ("ben", kept.until)
        await again.revoke(kept.id)
        assert all(one.revoked for one in await links.listed())
        path.write_text("nothing", encoding="utf-8")
        with pytest.raises(InvalidInput, match="not a list of links"):
            await again.listed()
