"""``edgekeeper watch run`` over a real service with a log: what wedges, what clients, accidents and operators do, and what must not follow."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .edge import until
from .test_full_disk import ROOTED
from .wedged import LINE, Wedged, wedged

OFTEN = {"burst": 20, "per_hour": 100}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Wedged]:
    with wedged(tmp_path, budget=OFTEN) as found:
        yield found


def beside(folder: Path, stories: dict[str, Callable[[Path], None]]) -> None:
    """Stories that mostly wait, told at the same time."""
    with ThreadPoolExecutor(len(stories)) as pool:
        told = {name: pool.submit(story, folder / name) for name, story in stories.items()}
    for name, one in told.items():
        if (err := one.exception()) is not None:
            err.add_note(f"in {name}")
            raise err


def test_wedges_are_cured_within_seconds_and_forged_lines_cure_nothing(made: Wedged) -> None:
    made.run()
    hung, dead = [], []
    for took, number in (*((hung, signal.SIGSTOP),) * 3, *((dead, signal.SIGKILL),) * 3):
        took.append(made.recovered(made.wedge(number=number)))
        made.until_state("quiet")
    assert statistics.median(hung) < 3.0, hung
    assert statistics.median(dead) < 1.5, dead
    assert made.recovered(made.wedge(line=False)) < 5.5, "the backstop"
    made.until_state("quiet")
    assert made.events()[-3:] == ["confirmed", "cured", "proved"]
    assert len(made.cures()) == 7
    low, high = made.journal()[-1]["data"]["recovered_s"]
    assert 0.5 < low < high < 5.5
    made.write_line(f"GET /x path=/{LINE}", 500)
    made.write_line(LINE, 500)
    made.until_state("armed")
    time.sleep(1.5)
    assert (len(made.cures()), made.events().count("armed")) == (7, 7)
    assert made.item()["line"] == LINE


def test_a_cure_in_the_cooldown_is_held_back_told_and_carried_out_when_it_ends(tmp_path: Path) -> None:
    with wedged(tmp_path, budget={"cooldown": "5s"}) as made:
        made.run()
        made.recovered(made.wedge())
        made.until_state("quiet")
        since = made.wedge()
        item = made.until_state("wanted")
        until(lambda: made.item()["held_by"] == "budget", "it is held back")
        item = made.item()
        assert 0 < item["suppressed_for_s"] <= 5
        assert "1 of 1 in 5 s are spent" in made.status()["alarms"]["watch web: wanted"]
        assert made.status()["verdict"] == "bad"
        assert made.recovered(since) < 7
        first, second = made.cures()
        assert 4.9 <= second - first <= 6.0  # each is stamped by its own shell, a moment after it was counted
        made.until_state("quiet")
        assert made.events() == ["armed", "confirmed", "cured", "proved", "armed", "confirmed", "suppressed", "cured", "proved"]
        assert not made.status()["alarms"]


def _killed(made: Wedged) -> None:
    made.end(signal.SIGKILL)
    assert list((made.folder / "state/watch").glob("armed-web.json"))
    made.run(wait=False)


def killed_armed(folder: Path) -> None:
    with wedged(folder, probe={"targets": ["tcp://127.0.0.1:1"], "failures": 8}) as made:
        made.watch["probe"] = {"targets": [f"http://127.0.0.1:{made.port}/"], "failures": 6}
        made.write()
        made.run()
        since = made.wedge()
        made.until_state("armed")
        time.sleep(0.5)
        _killed(made)
        made.recovered(since)
        made.until_state("quiet")
        assert (len(made.cures()), made.events().count("confirmed")) == (1, 1)
        assert made.events() == ["armed", "armed", "confirmed", "cured", "proved"]


def killed_wanted(folder: Path) -> None:
    with wedged(folder, budget={"cooldown": "6s"}) as made:
        made.run()
        made.recovered(made.wedge())
        made.until_state("quiet")
        since = made.wedge()
        made.until_state("wanted")
        _killed(made)
        made.recovered(since)
        made.until_state("quiet")
        first, second = made.cures()
        assert 5.9 <= second - first <= 8.0


def killed_curing(folder: Path) -> None:
    with wedged(folder, budget=OFTEN) as made:
        (made.folder / "takes").write_text("3")
        made.run()
        since = made.wedge()
        made.until_state("curing")
        until(made.cures, "the cure has begun")
        time.sleep(0.5)
        _killed(made)
        made.recovered(since)
        made.until_state("quiet")
        time.sleep(2)
        assert len(made.cures()) == 1, "the cure of the one that died went on by itself; it was proved, not repeated"
        assert made.events() == ["armed", "confirmed", "cured", "armed", "proved"]


def frozen(folder: Path) -> None:
    with wedged(folder, budget=OFTEN) as made:
        made.run()
        made.write_line()
        made.until_state("armed")
        for _ in range(2):  # the second time it is in the midst of a round, often
            made.runs[-1].send_signal(signal.SIGSTOP)
            time.sleep(5)
            made.write_line(times=20)
            made.runs[-1].send_signal(signal.SIGCONT)
            time.sleep(1.2)
        made.until_state("armed")
        assert (made.cures(), made.events()) == ([], ["armed"])


def test_whenever_it_is_killed_or_frozen_there_is_one_cure_in_the_end(tmp_path: Path) -> None:
    beside(tmp_path, {"armed": killed_armed, "wanted": killed_wanted, "curing": killed_curing, "frozen": frozen})


def test_a_changed_config_counts_and_a_broken_one_leaves_all_as_it_was(made: Wedged) -> None:
    made.run()
    other = {**made.watch, "name": "other", "file": str(made.folder / "other.log"), "shadow": True}
    (made.folder / "other.log").touch()
    made.root["watch"] = [made.watch, other]
    made.write()
    made.hup()
    until(lambda: {one["name"] for one in made.status()["watches"]} == {"web", "other"}, "one more watch")
    made.until_seen()
    for text, words in (
        ("watch: [", ("edgekeeper.yaml:1:",)),
        (made.config.read_text().replace('"name": "other"', '"name": "web"'), ("the name web is taken",)),
        (made.config.read_text().replace(f"http://127.0.0.1:{made.port}/", "tcp://127.0.0.1"), ("watch web: probe.targets",)),
    ):
        made.write(text)
        made.hup()
        why = until(lambda words=words: (said := made.status()["alarms"].get("config", "")) and all(w in said for w in words) and said, f"an alarm: {words}")
        assert why.endswith("the configuration before stays")
        assert len(made.status()["watches"]) == 2
    changed = {**made.watch, "fingerprints": ["it is stuck"]}
    made.root["watch"] = [changed]
    made.write()
    made.hup()
    until(lambda: [one["name"] for one in made.status()["watches"]] == ["web"] and not made.status()["alarms"], "the second is gone, nothing is wrong")
    made.until_seen()
    made.write_line()
    time.sleep(0.5)
    assert made.item()["state"] == "quiet", "the old fingerprint does not count any more"
    made.send(signal.SIGSTOP)
    made.write_line("it is stuck")
    assert made.recovered(time.monotonic()) < 4
    assert 'watch="other"' not in "".join(line for line in made.page("/metrics").splitlines() if line.startswith("edgekeeper_watch_up"))


def test_it_ends_only_when_the_cure_has_and_a_changed_watch_begins_only_then(made: Wedged) -> None:
    (made.folder / "takes").write_text("2")
    made.run()
    made.wedge()
    until(made.cures, "the cure has begun")
    made.watch["proof"] = {"every": "200ms"}
    made.write()
    made.hup()
    until(lambda: made.answers() and made.item().get("state") == "quiet", f"it is cured and proved\n{made.said()}")
    time.sleep(1.5)
    assert (len(made.cures()), len(made.cures("end"))) == (1, 1)
    made.wedge()
    until(lambda: len(made.cures()) == 2, "the next cure has begun")
    began = time.monotonic()
    assert made.end() == 0
    assert len(made.cures("end")) == 2
    assert 0.5 < time.monotonic() - began < 4


@pytest.mark.root
@pytest.mark.skipif(not ROOTED, reason="in a chroot, whose root is no mount, there is no private mount namespace to be had")
def test_what_cannot_be_counted_is_not_done_until_it_can(made: Wedged) -> None:
    state = made.folder / "state"
    state.mkdir()
    mount = f'mount -t tmpfs -o size=512k,mode=755 tmpfs {state} && exec {sys.executable} -m edgekeeper "$@"'
    run = made.run(wrapper=("unshare", "-m", "sh", "-c", mount, "edgekeeper"))
    inside = Path(f"/proc/{run.pid}/root{state}")
    handle = os.open(inside / "fill", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (65_536, 4096, 1):
        with contextlib.suppress(OSError):
            while os.write(handle, b"x" * size):
                pass
    os.close(handle)
    made.wedge()
    made.until_state("wanted")
    why = until(lambda: made.status()["alarms"].get("watch web: wanted"), "it is told")
    assert "budgets.json cannot be written: No space left on device" in why
    time.sleep(2.5)
    assert made.cures() == []
    assert made.said().count("watch.suppressed") == 1
    (inside / "fill").unlink()
    made.recovered(time.monotonic(), 5.0)
    made.until_state("quiet")
    assert (len(made.cures()), made.status()["alarms"]) == (1, {})


def test_a_pause_holds_back_and_every_command_tells_the_same(made: Wedged) -> None:
    made.run()
    done = made.cli("watch", "pause", "web", "--for", "10m", "--reason", "upgrade of the proxy")
    assert (done.returncode, "web cures nothing for 10m" in done.stdout) == (0, True), done.stderr
    wrong = made.cli("watch", "pause", "wb")
    assert (wrong.returncode, "'wb' is no watch of" in wrong.stderr) == (2, True)
    since = made.wedge()
    made.until_state("wanted")
    why = until(lambda: made.status()["alarms"].get("watch web: wanted"), "it is told")
    assert "upgrade of the proxy" in why
    told = made.cli("status")
    assert "upgrade of the proxy" in told.stdout
    for gauge in ('edgekeeper_watch_up{watch="web"} 0', 'edgekeeper_watch_wanted{watch="web"} 1'):
        until(lambda gauge=gauge: gauge in made.page("/metrics"), f"{gauge}, within a second", 3.0)
    assert made.cures() == []
    done = made.cli("watch", "resume", "web")
    assert (done.returncode, done.stdout) == (0, "web cures again\n")
    made.recovered(since)
    made.until_state("quiet")
    assert made.cli("watch", "resume", "web").stdout == "web was not paused\n"
    told = made.cli("watch", "history", "web")
    assert told.returncode == 0, told.stderr
    for event in ("watch.armed", "watch.confirmed", "watch.suppressed", "watch.cured", "watch.proved"):
        assert event in told.stdout
    until(lambda: 'edgekeeper_watch_up{watch="web"} 1' in made.page("/metrics"), "it is well in the metrics too")
    assert 'edgekeeper_watch_events_total{event="watch.cured",watch="web"} 1' in made.page("/metrics")
    assert made.cli("history", "--role", "watch").returncode == 0
    assert made.end() == 0


def test_a_cure_that_does_not_help_is_followed_by_the_next_step_and_all_is_told(tmp_path: Path) -> None:
    with wedged(tmp_path, proof={"every": "100ms", "within": "1s"}) as made:
        made.watch["cure"] = [{"command": ["false"]}, {"command": ["true"]}, made.watch["cure"]]
        made.write()
        made.run()
        made.recovered(made.wedge(number=signal.SIGKILL))
        made.until_state("quiet")
        assert [one["data"]["step"] for one in made.journal() if one["decision"] == "act"] == ["command false", "command true", "command sh"]
        assert made.events()[-1] == "proved"


@pytest.mark.parametrize(
    ("watch", "code", "words"),
    [
        ({"probe": "tcp://127.0.0.1"}, 2, "watch web: probe.targets: "),
        ({"fingerprints": [{"regex": "(unclosed"}]}, 2, "watch web: fingerprints: "),
        ({"guard": {"zone": "Europe/Nowhere"}}, 2, "the time zone 'Europe/Nowhere' is not known here"),
        ({"cure": {"docker": {}}}, 2, "watch.0.cure.docker: give exactly one of name, label, image (none given)"),
    ],
    ids=["target", "pattern", "zone", "config"],
)
def test_what_could_never_work_is_told_at_once(tmp_path: Path, watch: dict[str, object], code: int, words: str) -> None:
    with wedged(tmp_path, **watch) as made:
        assert made.run(wait=False).wait(20) == code
        assert words in made.said()
        assert "Traceback" not in made.said()


def test_two_signs_of_one_service_in_a_group_are_one_cure(made: Wedged) -> None:
    (made.folder / "takes").write_text("2.5")
    url = {name: made.watch[name] for name in ("probe", "cure", "budget")}
    made.root["watch"] = [one | {"group": {"name": "mesh"}} for one in (made.watch, url | {"name": "url"})]
    made.write()
    made.run()
    made.recovered(made.wedge())
    until(lambda: all(one["state"] in {"quiet", "armed"} for one in made.status()["watches"]), "both are done with it")
    time.sleep(1)
    assert len(made.cures()) == 1
    assert made.events("web") == ["armed", "confirmed", "cured", "proved"]
    assert made.events("url")[:3] == ["confirmed", "suppressed", "cancelled"]
    assert "web on this node has " in next(one["why"] for one in made.journal() if one["event"] == "watch.suppressed")


def test_two_processes_with_one_store_count_together_and_one_state_folder_has_one_master(tmp_path: Path) -> None:
    store = str(tmp_path / "budgets.json")
    budget = {"per_hour": 1, "store": store}
    with wedged(tmp_path / "a", name="mesh", budget=budget) as first, wedged(tmp_path / "b", "edge-b", name="mesh", budget=budget) as second:
        for made in (first, second):
            made.run()
        for made in (first, second):
            made.wedge()
        until(lambda: any(made.answers() for made in (first, second)), "one is cured")
        time.sleep(3)
        assert len(first.cures()) + len(second.cures()) == 1
        held = first if second.cures() else second
        assert "1 of 1 in 3600 s are spent" in held.status()["alarms"]["watch mesh: wanted"]
        second.root["state_dir"] = first.root["state_dir"]
        second.write()
        second.end()
        assert second.run(wait=False).wait(20) == 4
        assert "is already running" in second.said()
