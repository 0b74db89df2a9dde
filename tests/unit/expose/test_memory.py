"""The file that a pass leaves for the next process: whatever is found in it, nothing is deleted sooner."""

from __future__ import annotations

import json

import pytest

from edgekeeper.expose.brake import Absence, Memory
from edgekeeper.expose.kinds import Place
from edgekeeper.expose.memory import SCHEMA, Kept, recall, remember
from edgekeeper.model.moment import Moment

KEPT = Kept(
    Memory({"a.example": Absence(Moment(5.0, 4.0, "boot", 3.0), 2, Moment(6.0, 5.0, "boot", 4.0))}, passes=9),
    {"default": Place("2001:db8::1", 443)},
    "10.96.0.0/12",
)


def test_what_is_left_is_found(tmp_path):
    file = tmp_path / "memory.json"
    assert recall(file) == (Kept(), None)  # a first start is no reason for an alarm
    assert remember(file, KEPT) is None
    assert recall(file) == (KEPT, None)
    assert oct(file.stat().st_mode & 0o077) == "0o0"


def whole() -> dict:
    left = {"since": [5.0, 4.0, "boot", 3.0], "lists": 2}
    return {"schema": SCHEMA, "places": {"default": ["192.0.2.1", 443]}, "absent": {"a.example": left}, "passes": 9}


def test_the_example_is_one_that_is_read(tmp_path):
    (tmp_path / "memory.json").write_text(json.dumps(whole()))
    kept, why = recall(tmp_path / "memory.json")
    assert (why, kept.places, kept.brake.passes) == (None, {"default": Place("192.0.2.1", 443)}, 9)


@pytest.mark.parametrize("network", [None, 5, ["10.96.0.0/12"]])
def test_a_network_that_is_none_costs_nothing_else(tmp_path, network):
    (tmp_path / "memory.json").write_text(json.dumps({**whole(), "network": network}))
    kept, why = recall(tmp_path / "memory.json")
    assert (why, kept.network, kept.brake.passes) == (None, None, 9)


DAMAGED = {
    "binary": bytes(range(256)),
    "empty": b"",
    "half": json.dumps(whole()).encode()[:60],
    "a list": b"[]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "no places": json.dumps({**whole(), "places": None}).encode(),
    "a place without a port": json.dumps({**whole(), "places": {"default": ["192.0.2.1"]}}).encode(),
    "a port that is none": json.dumps({**whole(), "places": {"default": ["192.0.2.1", None]}}).encode(),
    "an endless port": json.dumps(whole()).replace("443", "1e999").encode(),
    "no absences": json.dumps({**whole(), "absent": [1]}).encode(),
    "an absence that is none": json.dumps({**whole(), "absent": {"a.example": 7}}).encode(),
    "no schema": json.dumps({key: value for key, value in whole().items() if key != "schema"}).encode(),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_counts_as_nothing_and_is_told(tmp_path, text):
    file = tmp_path / "memory.json"
    file.write_bytes(text)
    assert recall(file) == (Kept(), f"{file} cannot be read; absences are counted anew")


def test_a_file_of_another_version_counts_as_nothing_and_is_told(tmp_path):
    file = tmp_path / "memory.json"
    file.write_text(json.dumps({**whole(), "schema": SCHEMA + 1}))
    assert recall(file) == (Kept(), f"{file} is of another version; absences are counted anew")


def test_a_folder_in_its_place_is_no_memory(tmp_path):
    (tmp_path / "memory.json").mkdir()
    kept, why = recall(tmp_path / "memory.json")
    assert kept == Kept()
    assert why is not None
    assert "cannot be read" in why


def test_one_that_cannot_be_written_is_told_and_the_one_before_stays(tmp_path):
    file = tmp_path / "memory.json"
    assert remember(file, KEPT) is None
    why = remember(tmp_path / "none" / "memory.json", KEPT)
    assert why is not None
    assert why.endswith("; a restart of edgekeeper now would count absences anew")
    assert recall(file) == (KEPT, None)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.json"]
