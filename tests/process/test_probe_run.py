"""``edgekeeper probe run`` over a real server: outages with their bounds, other targets, a full disk, and ends of every kind."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from .asked import Asked, asked
from .test_full_disk import ROOTED


def up(made: Asked, url: str | None = None) -> bool:
    return made.targets()[url or made.url]["state"] == "up"


def down(made: Asked) -> bool:
    return made.targets()[made.url]["state"] == "down"


def test_an_outage_is_told_everywhere_with_bounds_that_hold_the_truth(tmp_path: Path) -> None:
    with asked(tmp_path) as made:
        made.run()
        made.until(lambda: up(made), "it answers")
        made.until(lambda: made.metric("edgekeeper_probe_up") == 1, "its metric")
        began = time.monotonic()
        made.web.stop()
        made.until(lambda: made.status()["alarms"], "an alarm")
        assert made.status()["verdict"] == "bad"
        assert made.targets()[made.url]["error"] == "refused"
        made.until(lambda: made.metric("edgekeeper_probe_up") == 0, "its metric")
        made.web.start()
        lasted = time.monotonic() - began
        made.until(lambda: up(made), "it answers again")
        made.until(lambda: not made.status()["alarms"], "no alarm")
        (outage,) = made.journal("probe.outage")
        assert (outage["object"], outage["decision"]) == (made.url, "alarm")
        assert outage["data"]["min_s"] - 0.05 <= lasted <= outage["data"]["max_s"] + 0.05
        assert outage["data"]["max_s"] - outage["data"]["min_s"] < 1.0
        assert abs(outage["data"]["first_bad"] - (time.time() - (time.monotonic() - began))) < 0.5
        item = made.targets()[made.url]
        assert (item["outages"], item["longest"]["max_s"]) == (1, outage["data"]["max_s"])
        made.until(lambda: made.metric("edgekeeper_probe_outages") == 1, "the metric")
        assert made.end() == 0
        assert len(made.journal("probe.outage")) == 1


def test_another_list_of_targets_is_taken_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    with asked(tmp_path) as made:
        run = made.run()
        made.until(lambda: up(made), "it answers")
        made.probe["targets"] = ["tcp://127.0.0.1"]
        made.write()
        run.send_signal(signal.SIGHUP)
        made.until(lambda: made.status()["alarms"], "the refusal is an alarm")
        assert made.url in made.targets()
        made.probe["targets"] = [made.url, f"tcp://127.0.0.1:{made.closed}"]
        made.write()
        run.send_signal(signal.SIGHUP)
        made.until(lambda: [one["state"] for one in made.targets().values()] == ["up", "down"], "the new list is asked")
        made.probe["targets"] = [made.url]
        made.write()
        run.send_signal(signal.SIGHUP)
        made.until(lambda: len(made.targets()) == 1 and up(made), "the old list again")
        made.until(lambda: not made.status()["alarms"], "what is not asked alarms nobody")
        (outage,) = made.journal("probe.outage")
        assert outage["data"]["max_s"] is None


def test_an_end_in_the_middle_of_an_outage_is_told_with_an_open_bound_and_a_kill_forgets_no_more_than_that(tmp_path: Path) -> None:
    with asked(tmp_path, record={}) as made:
        made.run()
        made.until(lambda: up(made), "it answers")
        made.web.stop()
        made.until(lambda: down(made), "it is down")
        assert made.end() == 0
        (outage,) = made.journal("probe.outage")
        assert outage["data"]["max_s"] is None
        made.run()
        made.until(lambda: down(made), "it is down")
        made.end(signal.SIGKILL)
        records = tmp_path / "state/probe/questions.jsonl"
        with records.open("a") as file:
            file.write('{"schema": 1, "ts"')
        made.web.start()
        made.run()
        made.until(lambda: up(made), "it answers")
        assert made.end() == 0
        lines = records.read_text().splitlines()
        broken = [line for line in lines if not line.endswith("}")]
        assert broken == ['{"schema": 1, "ts"']
        assert {json.loads(line)["ok"] for line in lines if line not in broken} == {True, False}
        assert [one["event"] for one in made.journal("probe.down", "probe.outage")] == ["probe.down", "probe.outage", "probe.down"]


@pytest.mark.root
@pytest.mark.skipif(not ROOTED, reason="in a chroot, whose root is no mount, there is no private mount namespace to be had")
def test_a_full_disk_stops_no_question(tmp_path: Path) -> None:
    with asked(tmp_path, record={}) as made:
        folder = tmp_path / "state/probe"
        folder.mkdir(parents=True)
        mount = f'mount -t tmpfs -o size=64k,mode=700 tmpfs {folder} && exec {sys.executable} -m edgekeeper "$@"'
        run = made.run("unshare", "-m", "sh", "-c", mount, "edgekeeper")
        made.until(lambda: "recording" in made.status()["alarms"], "the disk is full")
        asked_before = made.targets()[made.url]["asked"]
        made.until(lambda: made.targets()[made.url]["asked"] > asked_before + 10, "it asks on")
        assert up(made)
        made.until(lambda: (made.metric("edgekeeper_probe_unrecorded") or 0) > 0, "what is not recorded is counted")
        inside = Path(f"/proc/{run.pid}/root{folder}")
        lines = (inside / "questions.jsonl").read_bytes().splitlines()
        assert all(json.loads(line)["schema"] == 1 for line in lines[:-1])
        (inside / "questions.jsonl").unlink()
        (inside / "questions.jsonl").write_bytes(b"")
        assert len([one for one in made.journal("alarm.raised") if one["object"] == "recording"]) == 1
        assert made.end() == 0


def test_marked_requests_show_in_the_servers_log_and_in_the_records(tmp_path: Path) -> None:
    with asked(tmp_path, record={}, mark=True) as made:
        made.run()
        made.until(lambda: made.targets()[made.url]["asked"] > 5, "it asks")
        assert made.end() == 0
        records = [json.loads(line) for line in (tmp_path / "state/probe/questions.jsonl").read_text().splitlines()]
        ids = [one["id"] for one in records]
        assert len(set(ids)) == len(ids) > 5
        assert {f"/?kp={ident}" for ident in ids} <= set(made.web.paths)
        assert {one["target"] for one in records} == {made.url}


def test_a_meter_that_was_stopped_blames_nobody(tmp_path: Path) -> None:
    with asked(tmp_path, every="50ms") as made:
        run = made.run()
        made.until(lambda: up(made), "it answers")
        for _ in range(5):
            run.send_signal(signal.SIGSTOP)
            time.sleep(0.9)
            run.send_signal(signal.SIGCONT)
            before = made.targets()[made.url]["asked"]
            made.until(lambda before=before: made.targets()[made.url]["asked"] > before + 5, "it asks on")
        item = made.targets()[made.url]
        assert (item["unanswered"], item["outages"]) == (0, 0)
        assert item["unseen_below_s"] > 0.9
        made.until(lambda: (made.metric("edgekeeper_probe_uncounted") or 0) > 0, "what was not asked is counted")
        assert made.end() == 0
