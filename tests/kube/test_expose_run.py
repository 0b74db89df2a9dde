"""``edgekeeper expose run`` as processes: a change published and told in time, a reload, and another that goes on where one was killed.

The user is the service account of ``deploy/kubernetes/rbac/expose.yaml``, with the rights of that file and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
from collections.abc import Iterator

import pytest

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.http import get
from edgekeeper.lab.kube import Cluster

from .exposing import LEASE, ends, guarded_cluster, holder, ingress, site, until


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = guarded_cluster(tmp_path_factory.mktemp("kube"))
    yield made
    made.end()


ODD = [
    "a.home.example\r\nHost: evil.example",
    'a"}],"enabled":true,"x":["',
    "a.home.example/../../x",
    "\x1b[2Ja.home.example",
    "a home.example",
    "-a.home.example",
    "a..home.example",
    "\u212aelvin.home.example",
    "198.51.100.7",
    f"{'a' * 64}.home.example",
    "${HOME}.home.example",
    "*",
    "",
]
"""Host names that a definition without a pattern admits."""


def test_a_change_is_published_proved_and_told_in_time_and_one_bad_object_affects_no_other(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path) as it:
            sources = {"httproute": True, "tlsroute": True, "namespaces": [it.space]}
            running = await it.start(it.config(every="5s", sources=sources))
            await it.put(ingress("git", "git.home.example", "*.home.example"))
            await until(lambda: it.there("git.home.example"), 15)
            assert it.there("git.home.example")["name"] == f"edgekeeper:home/default:Ingress:{it.space}/git"
            took = []
            for turn in range(3):
                await asyncio.sleep(0.3)
                await it.put(ingress(f"x{turn}", f"x{turn}.home.example"))
                took.append(await until(lambda: it.there(f"x{turn}.home.example")))  # noqa: B023
            assert max(took) < 2.0, took
            before = it.fake.state.counters.writes
            await it.merge("x0", {"metadata": {"annotations": {"edgekeeper.io/request-timeout": "90s"}}})
            assert await until(lambda: it.there("x0.home.example")["targets"][0]["options"].get("request_timeout") == "1m30s") < 2.0
            assert it.fake.state.counters.writes == before + 1

            await it.put(ingress("soon", "soon.home.example", request_timeout="soon\x1b[2J"))
            await it.put(ingress("closed", "closed.home.example", allow_cidrs="everybody"))
            await it.put(ingress("lost", "lost.elsewhere.example"))
            await it.put(ingress("twice", "git.home.example", "second.home.example"))
            await it.route("HTTPRoute", "odd", *ODD)
            await it.route("HTTPRoute", "fine", "fine.home.example", "UPPER.home.example.")
            await it.route("TLSRoute", "pass", "pass.home.example", **{"listen-port": "443\r\nX: y", "owner": "other/x:Ingress:y/z"})
            good = {f"{name}.home.example" for name in ("git", "x0", "x1", "x2", "soon", "second", "fine", "upper", "pass")}
            await until(lambda: all(map(it.there, good)))
            assert "request_timeout" not in it.there("soon.home.example")["targets"][0]["options"]
            assert it.there("pass.home.example")["name"] == f"edgekeeper:home/default:TLSRoute:{it.space}/pass"
            assert it.there("pass.home.example")["listen_port"] == 443
            writes = it.fake.state.counters.writes

            async def told() -> bool:
                found = await it.events()
                return {
                    ("git", "Published"), ("git", "WildcardHost"), ("soon", "BadAnnotation"), ("closed", "BadAnnotation"), ("lost", "DomainUnknown"),
                    ("twice", "HostTaken"), ("odd", "BadHost"), ("pass", "BadAnnotation"), ("pass", "UnknownAnnotation"),
                } <= found.keys()  # fmt: skip

            assert await until(told, 30) > 5.0  # one a second; one more pass at least
            assert it.fake.state.counters.writes == writes
            assert {raw["domain"] for raw in it.fake.state.main.services.values()} == good
            found = await it.events()
            assert "is not a duration" in found["soon", "BadAnnotation"]
            assert "the hosts are held" in found["closed", "BadAnnotation"]
            assert [await it.noted(name) for name in ("git", "soon", "closed", "lost", "twice")] == [
                {"git.home.example": "active"},
                {"soon.home.example": "active"},
                {"closed.home.example": "held"},
                {"lost.elsewhere.example": "domain-unknown"},
                {"second.home.example": "active"},
            ]
            assert await it.noted("pass", it.routes("TLSRoute")) == {"pass.home.example": "active"}

            said = await it.status()
            assert (said["verdict"], said["alarms"], said["leads"], said["proved"]) == ("ok", {}, True, len(good))
            assert said["hosts"].keys() == {"closed.home.example", "lost.elsewhere.example"}
            metrics = (await get(f"http://127.0.0.1:{it.at['edge-a']}/metrics", deadline_s=3)).text
            assert re.search(r"^edgekeeper_expose_wanted 11", metrics, re.MULTILINE)
            assert await ends(running) == 0
            assert holder(await guarded.must("GET", LEASE)) == ""
            it.clean(metrics, json.dumps(said), *found.values())

    asyncio.run(story())


def test_a_reload_takes_another_target_and_refuses_what_cannot_be_read(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path) as it:
            other = await it.lead_to("other")
            config = it.config()
            await it.put(ingress("git", "git.home.example"))
            running = await it.start(config)
            await until(lambda: it.there("git.home.example"), 15)
            identity = it.there("git.home.example")["id"]
            it.config(service="other")
            running.send_signal(signal.SIGHUP)
            await until(lambda: it.there("git.home.example")["targets"][0]["host"] == other)
            config.write_text(config.read_text().replace("owner: home", "owner: '-'"))
            running.send_signal(signal.SIGHUP)

            async def refused() -> bool:
                return "the configuration before stays" in (await it.status())["alarms"].get("config", "")

            await until(refused)
            await it.put(ingress("more", "more.home.example"))
            await until(lambda: it.there("more.home.example"))
            it.config(service="other")
            running.send_signal(signal.SIGHUP)

            async def well() -> bool:
                return (await it.status())["alarms"] == {}

            await until(well)
            assert it.there("git.home.example")["id"] == identity
            assert await ends(running) == 0

    asyncio.run(story())


def test_another_goes_on_where_the_one_that_wrote_was_killed_and_two_never_write(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path) as it:
            first = await it.start(it.config("edge-a"))
            await it.put(ingress("git", "git.home.example"))
            await until(lambda: it.there("git.home.example"), 15)
            second = await it.start(it.config("edge-b"))
            busy = await it.command("apply", config=it.config("edge-c"), lease_s=1.0)
            assert busy.code == 4, busy.err
            assert "edge-a" in busy.err

            async def stands_by() -> bool:
                with contextlib.suppress(EdgekeeperError):
                    return "waits for the Lease" in (await it.status("edge-b"))["why"]
                return False

            await until(stands_by, 10)
            seen = it.fake.state.counters.calls["POST services"]
            it.fake.latency_s = 0.5  # so that it dies with writes under way
            for turn in range(20):
                await it.put(ingress(f"x{turn}", f"x{turn}.home.example"))
            await until(lambda: it.fake.state.counters.calls["POST services"] > seen)
            first.kill()
            await first.wait()
            it.fake.latency_s = 0.0
            assert not it.there("x19.home.example")
            await until(lambda: all(it.there(f"x{turn}.home.example") for turn in range(20)), 25)
            names = [raw["domain"] for raw in it.fake.state.main.services.values()]
            assert len(names) == len(set(names)) == 21
            assert it.fake.state.counters.statuses[409] == 0
            assert (await it.status("edge-b"))["leads"]
            assert await ends(second) == 0

    asyncio.run(story())
