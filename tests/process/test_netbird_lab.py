"""The lab's NetBird on the wire: its faults, its proxies with what stands behind them, and the baseline controller with its accidents."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from edgekeeper.lab.netbird import FakeNetBird, Fault
from edgekeeper.lab.netbird_state import DOMAIN
from edgekeeper.lab.plain_expose import PlainError, PlainExpose
from edgekeeper.lab.tlsbackend import TlsBackend

SERVICES = "/api/reverse-proxies/services"
TARGET = "198.51.100.10"
CIDR = "198.51.100.0/24"
ENDS = (ConnectionResetError, ssl.SSLError, asyncio.IncompleteReadError)
HOST = f"git.{DOMAIN}"


OPEN: list[asyncio.StreamWriter] = []
"""Clients' connections of the test that runs."""


def runs(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine; pytest still sees its arguments."""

    async def whole(**arguments: Any) -> None:
        try:
            await asyncio.wait_for(test(**arguments), 30)
        finally:
            while OPEN:
                OPEN.pop().close()
            await asyncio.sleep(0)

    def run(**arguments: Any) -> None:
        asyncio.run(whole(**arguments))

    run.__wrapped__ = test  # type: ignore[attr-defined]
    run.__name__ = test.__name__
    return run


class Wire:
    """One connection to the fake, as plain as it gets."""

    def __init__(self, fake: FakeNetBird, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.fake, self.reader, self.writer = fake, reader, writer

    @classmethod
    async def to(cls, fake: FakeNetBird) -> Wire:
        host, _, port = fake.url.rpartition("//")[2].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        OPEN.append(writer)
        return cls(fake, reader, writer)

    async def ask(self, method: str = "GET", path: str = SERVICES, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token {self.fake.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        said = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = int(next(line for line in said.split("\r\n") if line.lower().startswith("content-length")).split(":")[1])
        return int(said.split(" ")[1]), await self.reader.readexactly(length)


def service(fake: FakeNetBird, host: str = HOST, **changes: Any) -> dict[str, Any]:
    """A service by hand, on a resource that is made for it."""
    if not fake.state.main.resources:
        network = fake.state.hand("POST", "networks", {"name": "n"})["id"]
        fake.state.hand("POST", f"networks/{network}/resources", {"name": "r", "address": CIDR, "enabled": True})
    target = {"target_id": next(iter(fake.state.main.resources)), "target_type": "subnet", "host": TARGET, "protocol": "tcp", "port": 443, "enabled": True}
    target["options"] = changes.pop("options", {"proxy_protocol": True})
    whole = {"name": host, "domain": host, "mode": "tls", "listen_port": 443, "enabled": True, "targets": [target], **changes}
    made: dict[str, Any] = fake.state.hand("POST", "reverse-proxies/services", whole)
    return made


# --- the wire


@runs
async def test_sixteen_at_once_on_kept_connections_each_wait_only_for_themselves() -> None:
    async with FakeNetBird() as fake:
        fake.latency_s = 0.1
        wires = [await Wire.to(fake) for _ in range(16)]
        begin = time.monotonic()
        for _ in range(2):
            assert {status for status, _ in await asyncio.gather(*(wire.ask() for wire in wires))} == {200}
        assert 0.2 <= time.monotonic() - begin < 1.0
        assert (fake.most_at_once, fake.connections) == (16, 16)
        assert fake.state.counters.calls["GET services"] == 32


@runs
async def test_each_fault_on_the_wire() -> None:
    async with FakeNetBird() as fake:
        service(fake)

        async def hit(how: str, **more: Any) -> tuple[int, bytes]:
            fake.faults.add(Fault(how, **more))
            return await (await Wire.to(fake)).ask()

        whole = (await (await Wire.to(fake)).ask())[1]
        assert await hit("status", status=503, message="m") == (503, b'{"message": "m", "code": 503}')
        assert await hit("truncated") == (200, whole[: len(whole) // 2])
        assert await hit("empty") == (200, b"")
        assert await hit("body", body="null") == (200, b"null")
        for how in ("torn", "reset_mid"):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await hit(how)
        begin = time.monotonic()
        assert await hit("slow", seconds=0.2) == (200, whole)
        assert await hit("hang", seconds=0.2) == (200, whole)
        assert time.monotonic() - begin >= 0.38
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hit("hang"), 0.1)
        wire = await Wire.to(fake)
        assert (await wire.ask())[0] == 200
        fake.cut_connections()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await wire.ask()


@runs
async def test_a_reset_is_before_or_after_the_write() -> None:
    async with FakeNetBird() as fake:
        for how, networks in (("reset_before", 0), ("reset_after", 1), ("reset_mid", 2)):
            fake.faults.add(Fault(how, method="POST"))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await (await Wire.to(fake)).ask("POST", "/api/networks", b'{"name":"n"}')
            assert len(fake.state.main.networks) == networks, how


@runs
async def test_the_day_of_a_rate_limit_passes_in_a_moment() -> None:
    async with FakeNetBird() as fake:
        fake.state.limit(on=True, burst=7)
        wire = await Wire.to(fake)
        assert [(await wire.ask())[0] for _ in range(8)] == [200] * 7 + [429]
        fake.advance(86_400)
        assert [(await wire.ask())[0] for _ in range(8)] == [200] * 7 + [429]


@runs
async def test_what_is_no_request_is_refused_and_nothing_hangs() -> None:
    async with FakeNetBird() as fake:
        for text in (b"GET / HTTP/1.1 x\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"):
            wire = await Wire.to(fake)
            wire.writer.write(text)
            assert (await wire.reader.read()).startswith(b"HTTP/1.1 400 ")


@runs
async def test_an_order_that_cannot_be_carried_out_says_why() -> None:
    async with FakeNetBird() as fake:
        assert "'nope' is not a command" in (await fake.command({"do": "nope"}))["why"]
        assert (await fake.command({"do": "fault", "how": "empty"}))["ok"]
        assert not (await fake.command({"do": "latency"}))["ok"]
        refused = await fake.command({"do": "hand", "method": "POST", "path": "groups", "body": {}})
        assert refused == {"ok": False, "status": 422, "why": "group name shouldn't be empty"}


@runs
async def test_it_tells_whose_the_writes_were_and_who_is_routed() -> None:
    async with FakeNetBird() as fake:
        made = service(fake)
        assert (await fake.command({"do": "routed"}))["hosts"] == [HOST]
        assert (await fake.command({"do": "log"}))["log"] == [], "what is done by hand is no write of a controller"
        assert (await fake.command({"do": "user", "token": "nbp_other"}))["ok"]
        fake.token = "nbp_other"
        wire = await Wire.to(fake)
        for method, path in (("GET", SERVICES), ("DELETE", f"{SERVICES}/{made['id']}"), ("DELETE", f"{SERVICES}/{made['id']}")):
            await wire.ask(method, path)
        told = (await fake.command({"do": "log"}))["log"]
        assert [row[1:] for row in told] == [("nbp_other", "DELETE", "services")], "the second one was refused"
        assert (await fake.command({"do": "routed"}))["hosts"] == []


# --- the proxy, and what stands behind it


async def seen_through(proxy: tuple[str, int], name: str = HOST) -> dict[str, str]:
    """What the backend says that it sees."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(*proxy, ssl=context, server_hostname=name)
    try:
        writer.write(b"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        body = (await reader.read()).partition(b"\r\n\r\n")[2].decode()
        return dict(line.split(" ", 1) for line in body.splitlines())  # type: ignore[arg-type]
    finally:
        writer.close()


Stage = Callable[[FakeNetBird, TlsBackend, tuple[str, int]], Awaitable[None]]


async def staged(act: Stage, **proxy: Any) -> FakeNetBird:
    async with FakeNetBird() as fake, TlsBackend() as backend:
        member = await fake.add_proxy(**proxy)
        member.leads[TARGET, 443] = backend.address
        await act(fake, backend, member.address)
    return fake


@runs
async def test_the_backend_sees_the_client_by_the_header_that_it_is_sent() -> None:
    async def act(fake: FakeNetBird, backend: TlsBackend, proxy: tuple[str, int]) -> None:
        service(fake)
        said = await seen_through(proxy, HOST.upper())
        assert (said["client"], said["host"], said["path"]) == ("127.0.0.1", HOST, "/echo")
        fake.state.edit(HOST, targets=[{**fake.state.find(HOST)["targets"][0], "options": {}}])  # type: ignore[index]
        with pytest.raises(ENDS):
            await seen_through(proxy)  # the backend demands a header
        backend.proxied = "accept"
        assert int((await seen_through(proxy))["port"]) > 0
        assert backend.seen == [("127.0.0.1", HOST)] * 2

    await staged(act)


@runs
async def test_only_a_name_that_is_there_exactly_is_led_anywhere() -> None:
    async def act(fake: FakeNetBird, backend: TlsBackend, proxy: tuple[str, int]) -> None:
        del backend
        service(fake, f"*.{DOMAIN}")
        service(fake, f"off.{DOMAIN}")
        fake.state.edit(f"off.{DOMAIN}", enabled=False)
        service(fake, f"port.{DOMAIN}", listen_port=8443)
        for name in (f"a.{DOMAIN}", f"off.{DOMAIN}", f"port.{DOMAIN}"):
            with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
                await seen_through(proxy, name)
        fake.state.edit(f"off.{DOMAIN}", enabled=True)
        await seen_through(proxy, f"off.{DOMAIN}")

    fake = await staged(act)
    assert fake.proxies[0].count["unmatched"] == 3


@runs
async def test_a_put_cuts_what_runs_and_an_allow_list_keeps_out() -> None:
    async def act(fake: FakeNetBird, backend: TlsBackend, proxy: tuple[str, int]) -> None:
        del backend
        service(fake)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection(*proxy, ssl=context, server_hostname=HOST)
        OPEN.append(writer)
        fake.state.edit(HOST, access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]})
        assert fake.proxies[0].count["cut"] == 1
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        with pytest.raises(ENDS):
            await seen_through(proxy)
        fake.state.edit(HOST, access_restrictions={"allowed_cidrs": ["127.0.0.0/8"]})
        await seen_through(proxy)
        fake.state.edit(HOST, access_restrictions={"blocked_cidrs": ["127.0.0.1/32"]})
        with pytest.raises(ENDS):
            await seen_through(proxy)

    fake = await staged(act)
    assert fake.proxies[0].count["denied"] == 2


@runs
async def test_a_wedged_proxy_answers_when_its_dial_is_over() -> None:
    async def act(fake: FakeNetBird, backend: TlsBackend, proxy: tuple[str, int]) -> None:
        del backend
        service(fake, options={"request_timeout": "200ms"})
        fake.proxies[0].mode = "wedged"
        begin = time.monotonic()
        with pytest.raises(ENDS):
            await seen_through(proxy)
        assert time.monotonic() - begin >= 0.2

    fake = await staged(act)
    assert fake.proxies[0].count["unreached"] == 1


# --- the baseline: what a controller of the field does to what it is given


async def plain(fake: FakeNetBird, *hosts: str, cidr: str = CIDR, target: str = TARGET) -> dict[str, int]:
    controller = PlainExpose(fake.url, fake.token, cidr=cidr)
    try:
        return dict(await asyncio.to_thread(controller.sync, [f"{host}.{DOMAIN}" if "." not in host else host for host in hosts], target))
    finally:
        controller.mesh.close()


NAMES = [f"h{n}" for n in range(20)]


@runs
async def test_a_first_pass_and_a_steady_one() -> None:
    async with FakeNetBird() as fake:
        assert await plain(fake, *NAMES) == {"GET": 7, "POST": 24}
        assert await plain(fake, *NAMES) == {"GET": 7}
        assert fake.most_at_once == 1, "one request at a time"


@runs
async def test_an_empty_list_deletes_all_and_half_a_list_half() -> None:
    async with FakeNetBird() as fake:
        await plain(fake, *NAMES)
        assert (await plain(fake, NAMES[0]))["DELETE"] == 19
        assert (await plain(fake))["DELETE"] == 1
        assert fake.state.main.services == {}


@runs
async def test_a_new_address_opens_to_the_world_what_somebody_had_closed() -> None:
    async with FakeNetBird() as fake:
        await plain(fake, "a")
        fake.state.edit(f"a.{DOMAIN}", access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]})
        assert (await plain(fake, "a", target="198.51.100.11"))["PUT"] == 1
        assert "access_restrictions" not in fake.state.find(f"a.{DOMAIN}")  # type: ignore[operator]


@runs
async def test_one_host_that_cannot_be_stops_all_after_it() -> None:
    async with FakeNetBird() as fake:
        await plain(fake, "old")
        with pytest.raises(PlainError, match="412"):
            await plain(fake, "nobody.example", "new")
        assert list(fake.state.world.taken) == [f"old.{DOMAIN}"]


@runs
async def test_two_clusters_delete_each_others_services_for_ever() -> None:
    async with FakeNetBird() as fake:
        for _ in range(2):
            for names in (NAMES[:10], NAMES[10:]):
                await plain(fake, *names)
                assert list(fake.state.world.taken) == [f"{name}.{DOMAIN}" for name in names]


@runs
async def test_a_service_made_by_hand_is_deleted_on_the_first_pass() -> None:
    async with FakeNetBird() as fake:
        await plain(fake, "a")
        service(fake, f"hand.{DOMAIN}")
        assert (await plain(fake, "a"))["DELETE"] == 1


@runs
async def test_a_deleted_network_is_never_repaired() -> None:
    async with FakeNetBird() as fake:
        await plain(fake, "a", "b")
        fake.state.hand("DELETE", f"networks/{next(iter(fake.state.main.networks))}")
        assert await plain(fake, "a", "b") == {"GET": 7, "POST": 3}
        assert [route.dead for route in fake.state.routes()] == [True, True]


@runs
async def test_a_limit_of_six_a_minute_ends_it_for_ever_after_470_minutes() -> None:
    async with FakeNetBird() as fake:
        fake.state.limit(on=True)
        controller = PlainExpose(fake.url, fake.token, cidr=CIDR)
        passed: list[bool] = []

        def day() -> None:
            for _ in range(600):
                try:
                    controller.sync([f"a.{DOMAIN}"], TARGET)
                except PlainError:
                    passed.append(False)
                else:
                    passed.append(True)
                fake.advance(60)

        await asyncio.to_thread(day)
        controller.mesh.close()
        good = passed.index(False)
        assert 460 <= good <= 500
        assert not any(passed[good:])


@pytest.mark.parametrize("cidr", ["2001:DB8:1::/64", "198.51.100.10"])
@runs
async def test_a_network_that_is_written_in_another_way_fails_it(cidr: str) -> None:
    async with FakeNetBird() as fake:
        with contextlib.suppress(PlainError):
            await plain(fake, "a", cidr=cidr)
        with pytest.raises(PlainError, match="422"):
            await plain(fake, "a", cidr=cidr)
