"""``edgekeeper vip run`` on two nodes with a real keepalived: what an operator and accidents do to it, and what must not follow.

Every story is told to two versions of keepalived beside each other; adverts come each 100 ms.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .vipnodes import DNS, NEW, PEER, SPARE, WEB, Pair, Pairs, document, pairs

pytestmark = [pytest.mark.root, pytest.mark.engine, pytest.mark.timeout(150)]
TWO_HOLDERS_S = 1.5
"""How long two nodes may hold a VIP whose owner's keepalived was killed."""

RESPAWN_LOSES = 10
"""keepalived starts a killed VRRP process anew at once, which takes the VIPs off before the supervisor can cover them: about 15 ms, 3 questions
of 200 a second (2.2.7), more on a busy machine."""


@pytest.fixture(scope="module")
def both() -> Iterator[Pairs]:
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces; run them as root")
    with pairs() as made:
        yield made


def nothing_moved(made: Pair, since: float, ip: str = DNS) -> None:
    """Since then one and the same node had it all the time."""
    found = made.moves(since, ip)
    assert (found.moves, found.none_s, found.two_s) == (0, 0, 0), f"{ip}: {found}\n{made.all_said()}"


def test_every_vip_has_one_owner_and_both_nodes_tell_the_same(both: Pairs) -> None:
    def story(made: Pair) -> None:
        owners = {"dns": made.owner(DNS), "web": made.owner(WEB)}
        tables = []
        for node in PEER:
            rows = made.rows(node)
            assert {name: (row["state"], row["held"]) for name, row in rows.items()} == {
                name: ("MASTER", True) if owner == node else ("BACKUP", False) for name, owner in owners.items()
            }
            done = made.cli(node, "vip", "owner", "-o", "json")
            assert done.returncode == 0, done.stderr
            tables.append(json.loads(done.stdout)["vips"])
        assert tables[0] == tables[1]
        assert {row["vip"]: row["owners"] for row in tables[0]} == {name: [owner] for name, owner in owners.items()}

    both.each(story)


def test_a_drain_and_a_rebalance_lose_nothing_and_leave_no_trace(both: Pairs) -> None:
    def story(made: Pair) -> None:
        first = made.owner()
        second = PEER[first]
        made.arp_ignore(first, 2)
        with made.load() as load:
            done = made.cli(first, "vip", "drain", "dns")
            assert (done.returncode, made.holders()) == (0, {second}), done.stderr + made.all_said()
            assert f"dns moved to {second}" in done.stdout
            row = made.rows(first)["dns"]
            assert (row["state"], row["drained"], row["weight"], row["shadow"]) == ("FAULT", True, 300, False)
            made.until(lambda: not made.believes_able(second), f"{second} has heard that {first} is drained")
            refused = made.cli(second, "vip", "drain", "dns")
            assert (refused.returncode, made.holders()) == (3, {second})
            assert f"nobody could take dns: {first} cannot take it" in refused.stderr
            assert made.cli(first, "vip", "undrain", "dns").returncode == 0
            made.until(lambda: made.rows(first)["dns"]["state"] == "BACKUP", f"{first} may hold it again")
            made.until(lambda: made.believes_able(second), f"{second} has heard it")
            done = made.cli(second, "vip", "rebalance", "--vip", "dns")
            assert (done.returncode, made.holders()) == (0, {first}), done.stderr + made.all_said()
            made.until(lambda: made.rows(second)["dns"]["state"] == "BACKUP", f"{second} is a backup, not drained")
        assert load.lost == []
        assert load.by == set(PEER)
        assert [made.covers(node) for node in PEER] == [[], []]
        assert (made.arp_ignore(first), made.arp_ignore(second)) == (2, 0)
        made.arp_ignore(first, 0)

    both.each(story)


def test_a_config_with_mistakes_changes_nothing_and_every_mistake_is_told(both: Pairs) -> None:
    def story(made: Pair) -> None:
        since, node = time.monotonic(), made.owner()
        pid, files = made.status(node)["engine"]["pid"], (made.role(node).parents[1] / "state/vip/current").readlink()
        good = made.config(node).read_text()
        five = good.replace('"vrid": 53', '"vrid": 353').replace('"100ms"', '"often"').replace('"probe": "none"', '"probe": "some"')
        five = five.replace('"fall": 1', '"fall": 0').replace('"debounce"', '"bounce"')
        told: set[str] = set()
        for raw, words in ((five.encode(), ("353", "often", "some", "fall", "bounce")), (bytes(range(128, 256)) * 9, ("UTF-8",)), (b"", ("empty",))):
            made.swap(node, raw)
            made.hup(node)
            why = made.until(lambda: (said := made.status(node)["alarms"].get("config", "")) not in told and said, f"an alarm about {raw[:80]!r}")
            told.add(why)
            assert not [word for word in (*words, "stays") if word not in why], why
        made.swap(node, good.encode())
        made.hup(node)
        made.until(lambda: not made.status(node)["alarms"], "nothing is wrong any more")
        assert made.status(node)["engine"]["pid"] == pid
        assert (made.role(node).parents[1] / "state/vip/current").readlink() == files
        nothing_moved(made, since)

    both.each(story)


def test_a_changed_vrid_is_refused_and_the_rest_of_such_a_config_too(both: Pairs) -> None:
    def story(made: Pair) -> None:
        since, node = time.monotonic(), made.owner()
        digest = made.status(node)["engine"]["digest"]
        made.vips[0]["vrid"] = 54
        made.vips[1]["address"] = f"{NEW}/24"
        made.write(node)
        made.hup(node)
        why = made.until(lambda: made.status(node)["alarms"].get("topology"), "it is refused")
        assert f"the VRID of {DNS} would become 54 instead of 53" in why
        assert made.status(node)["engine"]["digest"] == digest
        assert {name: row["address"] for name, row in made.rows(node).items()} == {"dns": f"{DNS}/24", "web": f"{WEB}/24"}
        nothing_moved(made, since)

    both.each(story)


def test_a_vip_comes_and_goes_and_the_others_keep_their_owner(both: Pairs) -> None:
    def story(made: Pair) -> None:
        since = time.monotonic()
        pids = [made.status(node)["engine"]["pid"] for node in PEER]
        with made.load() as load:
            made.vips.append({"name": "new", "address": f"{NEW}/24", "vrid": 99, "probe": "none"})
            for node in PEER:
                made.write(node)
            made.hup(*PEER)
            made.until(lambda: len(made.holders(NEW)) == 1 and _states(made, "new") == {"MASTER", "BACKUP"}, "it comes")
            made.rest()
            assert not made.holders(NEW)
        assert load.lost == []
        assert [made.status(node)["engine"]["pid"] for node in PEER] == pids
        for ip in (DNS, WEB):
            nothing_moved(made, since, ip)

    both.each(story)


def test_a_supervisor_that_dies_or_leaves_moves_nothing_and_one_that_is_stopped_hands_over(both: Pairs) -> None:
    def story(made: Pair) -> None:
        since, node = time.monotonic(), made.owner()
        family = made.family(node)
        with made.load() as load:
            for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGQUIT, 0)):
                assert made.end(node, number) == code
                assert (made.holders(), made.family(node)) == ({node}, family)
                made.run(node)
                made.until(lambda: made.status(node).get("adopted"), "keepalived is adopted")
                made.until(lambda: made.status(node)["engine"]["pid"] == family[0] and made.rows(node)["dns"]["state"] == "MASTER", "as the owner")
            made.until(lambda: "unchanged" in made.status(node)["last_decision"], "and nothing is changed")
            nothing_moved(made, since)
            assert not [row for row in made.rows(node).values() if row["shadow"]]
            assert made.end(node, signal.SIGTERM) == 0
            assert made.holders() == {PEER[node]}
        assert load.lost == []
        assert made.net.pids(node) == ()
        assert (made.holders(DNS) | made.holders(WEB), made.covers(node), made.arp_ignore(node)) == ({PEER[node]}, [], 0)
        assert not list(made.role(node).glob("*.pid"))

    both.each(story)


def test_a_killed_keepalived_loses_no_question_and_no_two_hold_a_vip_for_long(both: Pairs) -> None:
    def story(made: Pair) -> None:
        for whole in (True, False):
            node, since = made.owner(), time.monotonic()
            family = made.family(node)
            with made.load() as load:
                victims = family if whole else family[1:]
                for pid in victims:  # one that sees the other die would let go in good order
                    os.kill(pid, signal.SIGSTOP)
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
                made.until(lambda node=node, family=family: len(found := made.family(node)) == 2 and found[1] not in family, "keepalived is back")
                made.rest()
            allowed = 0 if whole else RESPAWN_LOSES
            assert len(load.lost) <= allowed, f"{'both' if whole else 'the VRRP process'}: {load.lost}\n{made.all_said()}"
            assert made.moves(since).two_s <= TWO_HOLDERS_S, made.moves(since)
            made.until(lambda node=node: not made.covers(node), f"the cover on {node} ends", 5.0)

    both.each(story)


def test_without_its_reader_the_state_file_is_right_within_a_second_and_a_new_one_comes(both: Pairs) -> None:
    def story(made: Pair) -> None:
        node = made.owner()
        made.until(lambda: all(len(made.readers(each)) == 1 for each in PEER), "the readers of before the last reload have ended")
        readers = {each: made.readers(each) for each in PEER}
        for (pid,) in readers.values():
            os.kill(pid, signal.SIGKILL)
        made.rebalance(node, "dns")
        wanted = {node: False, PEER[node]: True}
        made.until(lambda: {each: made.told(each)["dns"]["state"] == "MASTER" for each in PEER} == wanted, "the state file of both is right", 1.0)
        made.until(lambda: all(len(made.readers(each)) == 1 for each in PEER), "both have another reader", 40.0)  # a reload for that comes each 30 s at most
        assert not [each for each in PEER if made.readers(each) == readers[each]]

    both.each(story)


def test_a_wiped_run_dir_comes_back_and_nothing_moves(both: Pairs) -> None:
    def story(made: Pair) -> None:
        since, node = time.monotonic(), made.owner()
        family = made.family(node)
        with made.load() as load:
            shutil.rmtree(made.role(node).parent, ignore_errors=True)  # some of it is there again before it has ended
            try:
                made.until(lambda: not _missing(made, node), "all is back")
            except AssertionError as err:
                raise AssertionError(f"{_missing(made, node)}: {err}") from None
            made.rest()
        nothing_moved(made, since)
        assert load.lost == []
        assert made.family(node) == family
        made.until(
            lambda: made.ask(node, "rebalance", "dns")[0]["ok"], "keepalived hears of its track files again", 35
        )  # a second wave of the wipe waits its turn
        made.until(lambda: made.told(node)["dns"]["state"] == "BACKUP", "and is heard")

    both.each(story)


STRANGER = """global_defs { enable_script_security }
vrrp_instance VI_strange { state BACKUP
 interface eth0
 virtual_router_id 7
 priority 7
 virtual_ipaddress { 192.0.2.7/24 }
}
"""


def test_beside_a_strange_keepalived_nothing_starts_and_its_pid_is_told(both: Pairs) -> None:
    def story(made: Pair) -> None:
        made.write(SPARE)
        config = made.home(SPARE) / "strange.conf"
        config.write_text(STRANGER)
        argv = [made.binary, "--dont-fork", "--log-console", "--vrrp", f"--use-file={config}", *(f"--{of}pid={config}.{of}pid" for of in ("", "vrrp_"))]
        with (made.home(SPARE) / "log").open("ab") as log:
            stranger = subprocess.Popen(made.net.argv(SPARE, [str(word) for word in argv]), stdout=log, stderr=log)
        try:
            made.until(lambda: len(made.family(SPARE)) == 2, "it runs")
            family = made.family(SPARE)
            made.run(SPARE)
            why = made.until(lambda: made.status(SPARE).get("refused"), "it is refused")
            assert f"another keepalived (pid {stranger.pid}) runs here" in why
            assert made.family(SPARE) == family
            assert made.end(SPARE, signal.SIGTERM) == 0
        finally:
            stranger.terminate()
            stranger.wait(10)

    both.each(story)


def test_a_script_user_that_cannot_run_edgekeeper_is_refused_before_anything_starts(both: Pairs, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    python = tmp_path / "python"  # what keepalived would start is the edgekeeper beside it
    python.symlink_to(Path(sys.executable).resolve())
    (tmp_path / "edgekeeper").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "edgekeeper").chmod(0o755)

    def story(made: Pair) -> None:
        made.write(SPARE, engine={"binary": str(made.binary), "script_user": "nobody"})
        made.run(SPARE, wrapper=(str(python), "-m", "edgekeeper"), env={"PYTHONPATH": os.pathsep.join(sys.path)})
        why = made.until(lambda: made.status(SPARE).get("refused"), "it is refused")
        assert f"track script and FIFO reader could not run: nobody cannot run {tmp_path}/edgekeeper" in why
        assert "vip.engine.script_user" in why
        assert made.family(SPARE) == []
        assert made.end(SPARE, signal.SIGTERM) == 0

    both.each(story)


@pytest.mark.parametrize(
    ("vip", "words"),
    [
        ({"vips": [{"name": "dns", "address": f"{DNS}/24", "vrid": 53, "probe": {"tcp": f"{DNS}:53"}}]}, ("VRP018", "127.0.0.1")),
        ({"script": {"interval": 2, "fall": 4}, "budget": "8s"}, ("9 s", "2 s x 4 looks + 1 s timeout", "the budget is 8 s")),
    ],
    ids=["a probe of the VIP itself", "later than the budget"],
)
def test_what_could_never_or_too_late_move_a_vip_is_refused_by_check(tmp_path: Path, vip: dict[str, object], words: tuple[str, ...]) -> None:
    config = tmp_path / "edgekeeper.yaml"
    (tmp_path / "token").write_text("a-token-of-a-test")
    (tmp_path / "token").chmod(0o600)
    config.write_bytes(document("edge-a", tmp_path, **{"vips": [{"name": "web", "address": f"{WEB}/24", "vrid": 80, "probe": "none"}], **vip}))
    done = subprocess.run([sys.executable, "-m", "edgekeeper", "--config", str(config), "check"], capture_output=True, text=True, check=False, timeout=40)
    assert done.returncode == 2, done.stdout
    assert not [word for word in words if word not in done.stderr], done.stderr


def _states(made: Pair, name: str) -> set[str]:
    return {made.rows(node).get(name, {}).get("state", "") for node in PEER}


def _missing(made: Pair, node: str) -> list[str]:
    """What is not there again of a run_dir that was wiped."""
    folder = made.role(node)
    wanted = [f"{kind}-{vip}" for kind in ("weight", "health") for vip in ("dns", "web")]
    gone = [name for name in (*wanted, "peers.json", "engine.json", "control.sock") if not (folder / name).exists()]
    told, readers = made.told(node).get("dns", {}).get("state"), len(made.readers(node))
    return gone + ([f"the state file says {told}"] if told != "MASTER" else []) + ([f"{readers} readers"] if readers != 1 else [])
