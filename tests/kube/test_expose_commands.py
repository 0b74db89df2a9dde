"""``edgekeeper expose plan``, ``apply``, ``adopt``, ``relinquish`` and ``verify``, as a person uses them.

The user is the service account of ``deploy/kubernetes/rbac/expose.yaml``, with the rights of that file and no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from edgekeeper.lab.kube import Cluster
from edgekeeper.lab.netbird import Fault

from .exposing import LEASE, guarded_cluster, holder, ingress, site


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = guarded_cluster(tmp_path_factory.mktemp("kube"))
    yield made
    made.end()


def test_a_plan_needs_a_reader_only_and_what_it_shows_is_done_by_apply(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path) as it:
            state, hosts = it.fake.state, [f"h{turn}.home.example" for turn in range(3)]
            for turn, host in enumerate(hosts):
                await it.put(ingress(f"h{turn}", host))
            reader = it.folder / "reader.token"
            reader.touch(mode=0o600)
            reader.write_text(it.fake.reader)
            limited = it.config("reader", netbird={"token_file": str(reader)})
            planned = await it.command("plan", "-o", "json", config=limited)
            assert planned.code == 1, planned.err
            assert [(one["kind"], one["host"]) for one in planned.json["actions"]] == [("create", host) for host in hosts]
            assert planned.json["steps"]
            assert not (it.folder / "reader" / "state" / "expose").exists()
            await it.command("apply", config=limited)
            assert state.counters.writes == 0

            done = await it.command("apply")
            assert (done.code, done.out.splitlines()[-1]) == (0, "3 wanted, 3 created, 0 updated, 0 disabled, 0 deleted, 0 held"), done.err
            again = await it.command("plan")
            assert (again.code, again.out) == (0, "3 wanted, 3 managed, 0 to do, 0 held, 0 services of others\n")

            await it.put(ingress("late", "late.home.example"))
            it.fake.faults.add(Fault("status", method="POST", kind="services", status=500))
            failed = await it.command("apply", "-o", "json")
            assert (failed.code, [one["host"] for one in failed.json["failed"]]) == (5, ["late.home.example"])
            it.token.write_text("nbp_wrong")
            unknown = await it.command("plan")
            assert unknown.code == 6
            assert "put a valid token in its place" in unknown.err
            assert "nbp_wrong" not in unknown.err + unknown.out
            assert it.fake.token not in it.written()
            assert holder(await guarded.must("GET", LEASE)) == ""

    asyncio.run(story())


def test_what_is_somebody_else_s_is_adopted_and_let_go_by_command_only(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path) as it:
            await it.put(ingress("git", "git.home.example"))
            assert (await it.command("apply")).code == 0
            limits = {"allowed_cidrs": ["192.0.2.0/24"]}
            by_hand = {**it.there("git.home.example"), "name": "my own", "domain": "mine.home.example", "access_restrictions": limits}
            it.fake.state.hand("POST", "reverse-proxies/services", by_hand)
            nobody = await it.command("adopt", "mine.home.example", "--yes")
            assert (nobody.code, it.there("mine.home.example")["name"]) == (2, "my own")
            assert "give an Ingress with that host the label first" in nobody.err
            await it.put(ingress("mine", "mine.home.example"))
            shown = await it.command("adopt", "mine.home.example")
            assert (shown.code, it.there("mine.home.example")["name"]) == (0, "my own")
            assert "nothing was done; --yes does it" in shown.out
            adopted = await it.command("adopt", "MINE.home.example.", "--yes")
            assert adopted.code == 0, adopted.err
            now = it.there("mine.home.example")
            assert (now["name"], now["access_restrictions"]) == (f"edgekeeper:home/default:Ingress:{it.space}/mine", limits)
            it.fake.state.edit("mine.home.example", enabled=False)
            off = await it.command("relinquish", "mine.home.example", "--yes")
            assert (off.code, it.there("mine.home.example")["name"]) == (3, now["name"])
            assert "the mesh would route it again" in off.err
            it.fake.state.edit("mine.home.example", enabled=True)
            let_go = await it.command("relinquish", "mine.home.example", "--yes")
            assert (let_go.code, it.there("mine.home.example") | {"meta": 0}) == (0, now | {"name": "mine.home.example", "meta": 0})
            assert (await it.command("relinquish", "mine.home.example", "--yes")).code == 2

    asyncio.run(story())


def test_too_many_deletions_are_refused_until_a_person_insists(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path) as it:
            hosts = [f"h{turn}.home.example" for turn in range(6)]
            for turn, host in enumerate(hosts):
                await it.put(ingress(f"h{turn}", host))
            quick = it.config(brake={"absent_lists": 1, "grace": "0s", "disabled": "0s"})
            assert (await it.command("apply", config=quick)).code == 0
            for turn in range(5):
                await guarded.must("DELETE", f"{it.ingresses}/h{turn}")
            too_many = await it.command("apply", config=quick)
            assert too_many.code == 3, too_many.err
            assert "5 of 6 services would go, more than 30 %" in too_many.err
            assert all(it.there(host)["enabled"] for host in hosts)
            forced = await it.command("apply", "--force", config=quick)
            assert forced.code == 0, forced.err
            assert [it.there(host)["enabled"] for host in hosts] == [False] * 5 + [True]
            assert (await it.command("apply", "--force", config=quick)).code == 0
            assert [raw["domain"] for raw in it.fake.state.main.services.values()] == hosts[5:]

    asyncio.run(story())


def test_verify_tells_a_backend_that_sees_its_clients_from_one_that_does_not_and_a_wedge(guarded, tmp_path):
    async def story() -> None:
        async with site(guarded, tmp_path, listen="::1", proxied="accept") as it:
            await it.put(ingress("git", "git.home.example"))
            await it.put(ingress("bare", "bare.home.example", proxy_protocol="false"))
            assert (await it.command("apply")).code == 0
            plain = await it.command("verify")
            assert plain.code == 0, plain.out
            assert len(plain.out.splitlines()) == 3
            bare = await it.command("verify", "--echo", "/whoami", "-o", "json")
            found = {one["host"]: one for one in bare.json["hosts"]}
            assert (bare.code, found["git.home.example"]["ok"], found["bare.home.example"]["ok"]) == (1, True, False)
            assert found["git.home.example"]["answers"][0]["seen"] == "::1"
            assert "the backend sees 127.0.0.1 and not ::1" in found["bare.home.example"]["why"]
            it.backend.proxied = "off"  # the header is garbage to it
            garbage, stranger = await asyncio.gather(it.command("verify", "git.home.example"), it.command("verify", "nowhere.home.example"))
            assert (garbage.code, stranger.code) == (1, 1)
            it.backend.proxied = "accept"
            it.proxy.mode = "wedged"
            wedged = await it.command("verify", "git.home.example")
            assert wedged.code == 1
            assert "timed out (no answer: a black hole, or too slow)" in wedged.out

    asyncio.run(story())
