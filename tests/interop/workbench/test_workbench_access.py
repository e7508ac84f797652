"""Access to the workbench: which users, from where, and with which proof."""

from __future__ import annotations

import httpx
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import open_log
from duolog.interop.http.clients import Proxies
from duolog.interop.http.limits import HttpLimits
from duolog.interop.workbench.access.guard import HostNames
from duolog.interop.workbench.access.identity import Access, Identity
from duolog.interop.workbench.access.rates import Rate
from duolog.interop.workbench.state import WorkbenchLimits
from workbench import BASE, SECRET, visiting

PAGES = ("/sessions", "/v1/sessions/rows", "/v1/sessions/stream")


def test_a_token_says_who_somebody_is_and_cannot_be_made_up() -> None:
    access = Access(SECRET)
    for who in (Identity("operator"), Identity("viewer"), Identity("participant", "ann", "s")):
        token = access.token(who)
        assert access.by_token(token) == who
        assert access.by_cookie(access.cookie(who)) == who
        assert access.by_cookie(token) is None  # a link is not a cookie
    assert Access("another secret of theirs").by_cookie(access.cookie(Identity("viewer"))) is None
    data, _, mac = access.token(Identity("viewer")).partition(".")
    forged = access.token(Identity("participant", "ann", "s")).partition(".")[0]
    for bad in ("", ".", "ä", data, f"{forged}.{mac}", f"{data}.", f"{data}x.{mac}", SECRET[:-1]):
        assert access.by_token(bad) is None
        assert access.by_cookie(bad) is None


def test_links_and_cookies_end_and_a_cookie_ends_with_its_link() -> None:
    now = 1_000_000.0
    access = Access(SECRET, life=100.0, now=lambda: now)
    ann = Identity("participant", "ann", "s")
    link = access.token(ann)
    now += 90
    late, own = access.cookie(ann, link), access.cookie(Identity("operator"), SECRET)
    assert access.by_token(link) == access.by_cookie(late) == ann
    now += 20
    assert access.by_token(link) is None
    assert access.by_cookie(late) is None
    assert access.by_cookie(own) == access.by_token(SECRET) == Identity("operator")
    now += 100
    assert access.by_cookie(own) is None
    with pytest.raises(InvalidInput, match="not for 0 seconds"):
        Access(SECRET, life=0.0)


def test_a_participant_is_an_actor_of_a_session() -> None:
    with pytest.raises(InvalidInput, match="an actor of the session"):
        Identity("participant")
    with pytest.raises(InvalidInput, match="an actor of the session"):
        Identity("viewer", "ann", "s")


def test_of_a_read_only_workbench_everybody_is_a_viewer() -> None:
    access = Access(SECRET, read_only=True)
    assert access.by_token(SECRET) == Identity("viewer")
    assert access.by_cookie(Access(SECRET).cookie(Identity("operator"))) == Identity("viewer")


def test_a_client_has_a_number_of_tries_and_gets_new_ones_with_time() -> None:
    now = 0.0
    rate = Rate(2, 0.5, lambda: now)
    assert [rate.take("a") for _ in range(3)] == [True, True, False]
    assert rate.take("b")
    now = 2.0
    assert [rate.take("a") for _ in range(2)] == [True, False]


async def test_without_a_cookie_there_are_no_data() -> None:
    async with open_log("memory://") as log, visiting(log, None) as stranger:
        entrance = await stranger.get("/")
        assert entrance.status_code == 200
        assert "log.db" not in entrance.text
        page = await stranger.client.get("/sessions?agent=a%26b&q=x")
        assert page.status_code == 303
        assert page.headers["location"] == "/?to=%2Fsessions%3Fagent%3Da%2526b%26q%3Dx"
        for path in PAGES[1:]:
            assert (await stranger.get(path)).status_code == 401


async def test_the_token_is_exchanged_for_a_strict_cookie() -> None:
    async with open_log("memory://") as log, visiting(log, None) as stranger:
        assert (await stranger.post("/enter", {})).status_code == 401
        entered = await stranger.post("/enter", {"token": SECRET})
        assert entered.json() == {"role": "operator", "session": ""}
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert SECRET not in cookie
        assert (await stranger.get("/sessions")).status_code == 200
        assert (await stranger.post("/enter", {})).json()["role"] == "operator"


async def test_tokens_cannot_be_guessed_at_leisure() -> None:
    limits = WorkbenchLimits(entries=(3, 0.001))
    async with open_log("memory://") as log, visiting(log, None, limits=limits) as stranger:
        tries = [await stranger.post("/enter", {"token": f"guess {n}"}) for n in range(5)]
        assert [one.status_code for one in tries] == [401, 401, 401, 429, 429]
        # Guesses do not lock out a user with the token: it is long enough not to be guessed.
        entered = await stranger.post("/enter", {"token": SECRET})
        assert entered.status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8730"}, 421),
        ({"Host": "10.0.0.7"}, 421),
        ({"Host": "[::1]:8730"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
    ],
)
async def test_requests_come_from_here_and_are_meant_for_here(
    headers: dict[str, str], status: int
) -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        assert (await visitor.client.get("/sessions", headers=headers)).status_code == status


async def test_a_server_on_all_addresses_answers_to_addresses_and_to_its_names() -> None:
    hosts = HostNames(["bench.example.org"], any_address=True)
    async with open_log("memory://") as log, visiting(log, hosts=hosts) as visitor:
        for host, status in (
            ("10.0.0.7:8730", 200),
            ("[2001:db8::1]", 200),
            ("Bench.Example.Org", 200),
            ("evil.example", 421),
        ):
            answer = await visitor.client.get("/sessions", headers={"Host": host})
            assert answer.status_code == status, host


async def test_a_reverse_proxy_may_say_who_has_signed_in() -> None:
    signed = {"X-Signed-In": "ann"}
    async with open_log("memory://") as log:
        async with visiting(log, None, proxy_header="X-Signed-In") as visitor:
            assert (await visitor.client.get("/sessions")).status_code == 303
            page = await visitor.client.get("/sessions", headers=signed)
            assert page.status_code == 200
            assert "operator" in page.text
            empty = await visitor.client.get("/sessions", headers={"X-Signed-In": " "})
            assert empty.status_code == 303
        async with visiting(log, None) as visitor:  # without a configured proxy
            assert (await visitor.client.get("/sessions", headers=signed)).status_code == 303


async def test_what_changes_something_says_where_it_comes_from() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        bare = await visitor.client.post("/enter", json={})
        assert bare.status_code == 403
        for media in ("text/plain", "application/x-www-form-urlencoded"):
            posted = await visitor.post("/enter", {}, **{"Content-Type": media})
            assert posted.status_code == 415
        large = await visitor.post("/enter", {"token": "x" * 5000})
        assert large.status_code == 413


async def test_a_client_that_asks_too_much_has_to_wait() -> None:
    limits = WorkbenchLimits(reads=(3, 0.001))
    async with open_log("memory://") as log, visiting(log, limits=limits) as visitor:
        found = [(await visitor.get("/v1/sessions/rows")).status_code for _ in range(4)]
        assert found == [200, 200, 200, 429]


async def test_strangers_use_up_nothing_of_a_user_at_the_same_address() -> None:
    limits = WorkbenchLimits(reads=(3, 0.001), writes=(3, 0.001), entries=(3, 0.001))
    async with open_log("memory://") as log, visiting(log, limits=limits) as visitor:
        transport = httpx.ASGITransport(visitor.client._transport.app)  # type: ignore[attr-defined]
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as stranger:
            found = [(await stranger.get("/sessions")).status_code for _ in range(9)]
            assert found == [303] * 3 + [429] * 6
            assert (await visitor.get("/sessions")).status_code == 200
            assert (await stranger.get("/")).status_code == 200
            for _ in range(40):
                await stranger.post(
                    "/enter", json={"token": "a wrong one"}, headers={"Origin": BASE}
                )
            entered = await visitor.post("/enter", {"token": SECRET})
            assert entered.status_code == 200


async def test_a_trusted_proxy_names_the_client() -> None:
    limits = WorkbenchLimits(reads=(3, 0.001))
    async with open_log("memory://") as log:
        async with visiting(log, None, limits=limits, proxies=("127.0.0.0/8",)) as stranger:
            for client in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
                # A client's own value comes before the one that the proxy adds.
                named = {"X-Forwarded-For": f"198.51.100.{client[-1]}, {client}"}
                found = [
                    (await stranger.client.get("/sessions", headers=named)).status_code
                    for _ in range(4)
                ]
                assert found == [303, 303, 303, 429], client
            other = {"X-Forwarded-For": "2001:db8::2"}  # of the same network
            assert (await stranger.client.get("/sessions", headers=other)).status_code == 429
        async with visiting(log, None, limits=limits) as stranger:  # no proxy is trusted
            found = [
                (
                    await stranger.client.get(
                        "/sessions", headers={"X-Forwarded-For": f"192.0.2.{n}"}
                    )
                ).status_code
                for n in range(4)
            ]
            assert found == [303, 303, 303, 429]


def test_the_client_is_the_last_that_is_not_a_trusted_proxy() -> None:
    proxies = Proxies(("10.0.0.0/8", "::1"))

    def client_of(peer: str, *forwarded: str) -> str:
        headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
        return proxies.client_of({"type": "http", "client": (peer, 1), "headers": headers})

    assert client_of("192.0.2.1", "198.51.100.1") == "192.0.2.1"
    assert client_of("10.0.0.1") == "10.0.0.1"
    assert client_of("10.0.0.1", "192.0.2.1, 10.0.0.2") == "192.0.2.1"
    assert client_of("::1", "198.51.100.1", "192.0.2.1,10.0.0.2") == "192.0.2.1"
    assert client_of("10.0.0.1", "nonsense") == ""
    with pytest.raises(InvalidInput, match=r"an address or a network such as 10\.0\.0\.0/8"):
        HttpLimits(proxies=("example.org",))


async def test_every_answer_forbids_what_is_not_from_here() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        for path in ("/", "/sessions", "/v1/sessions/rows", "/assets/dom.js", "/nothing"):
            headers = (await visitor.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == ("no-cache" if "assets" in path else "no-store")
