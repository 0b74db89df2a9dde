"""From looks to what keepalived is told, over looks of the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekeeper.config.root import Root
from edgekeeper.errors import StepFailedError
from edgekeeper.model.entry import Entry
from edgekeeper.vip import health
from edgekeeper.vip.evidence import Sample, Says
from edgekeeper.vip.prober import Patient, Prober, target_of
from edgekeeper.vip.weight import TrackFile, Weight

GOOD, DEAD, MEMBERS, BLIND = (Sample(kind, f"it is {kind}", None) for kind in ("good", "dead", "members", "blind"))
BETTER = Says("edge-b", 0.1, "good", None, can_take=True)


class Bench:
    """A prober of one VIP, ``dns``; its clock moves by the test's hand."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.peers, self.journal, self.news = 100.0, [], [], []  # type: tuple[float, list[Says], list[Entry], list[str]]  # type: ignore[assignment]
        self.file = TrackFile(folder, "health")
        self.prober = Prober(self.file, self, self, lambda _: self.peers, self.news.append)
        root = Root.model_validate(
            {
                "nodes": {"a": {"address": "192.0.2.11"}, "b": {"address": "192.0.2.12"}},
                "vip": {"interface": "eth0", "vips": [{"name": "dns", "address": "192.0.2.53/24", "vrid": 53, "probe": {"tcp": "127.0.0.1:9"}}]},
            }
        )
        assert root.vip is not None
        self.vip = root.vip
        self.prober.rewrite(root.vip.vips, root.vip.prober)

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    def write(self, entry: Entry) -> None:
        self.journal.append(entry)

    @property
    def patient(self) -> Patient:
        return self.prober.patients["dns"]

    def looks(self, *samples: Sample) -> int:
        """What the track file says after these looks, 0.2 s apart."""
        for sample in samples:
            self.now += 0.2
            self.prober._judge("dns", self.patient, sample)
        return self.file.read("dns")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path, monkeypatch)
    yield made
    made.prober.close()


def test_a_dead_service_yields_after_two_looks_and_comes_back_after_five(bench: Bench) -> None:
    assert bench.looks(GOOD, DEAD) == Weight.SERVING
    assert bench.looks(DEAD) == Weight.FAULT
    assert bench.patient.dead
    assert bench.looks(*[GOOD] * 4) == Weight.FAULT
    assert bench.looks(GOOD) == Weight.SERVING
    assert [(str(e.event), e.object, e.decision) for e in bench.journal] == [("vip.health_changed", "dns", "act")] * 2
    assert "this node yields: it is dead" in bench.journal[0].why


def test_a_look_that_was_blind_counts_for_nothing(bench: Bench) -> None:
    assert bench.looks(DEAD, *[BLIND] * 9) == Weight.SERVING
    assert bench.patient.sample == DEAD
    assert bench.looks(DEAD) == Weight.FAULT


def test_a_service_that_flaps_must_be_good_for_longer_each_time(bench: Bench) -> None:
    rise = bench.vip.prober.rise
    for falls in (1, 2, 3):
        assert bench.looks(DEAD, DEAD) == Weight.FAULT
        assert bench.looks(*[GOOD] * (rise * 2 ** (falls - 1) - 1)) == Weight.FAULT
        assert bench.looks(GOOD) == Weight.SERVING
    bench.now += health.WINDOW_S
    assert bench.looks(DEAD, DEAD) == Weight.FAULT
    assert bench.looks(*[GOOD] * rise) == Weight.SERVING, "what was so long ago is forgotten"


def test_trouble_behind_the_engine_yields_only_to_a_peer_that_says_so_since_it_began(bench: Bench) -> None:
    assert bench.looks(*[MEMBERS] * 20) == Weight.SERVING
    assert not bench.patient.dead
    bench.peers = [BETTER]
    assert bench.looks(MEMBERS, MEMBERS) == Weight.FAULT
    other = Bench(bench.file.path("x").parent, pytest.MonkeyPatch())
    other.peers = [BETTER]
    assert other.looks(MEMBERS, MEMBERS) == Weight.SERVING, "the word of 0.1 s ago may be of before the common cause"
    other.prober.close()


def test_another_target_is_another_patient_and_the_same_one_keeps_what_is_known(bench: Bench) -> None:
    bench.looks(DEAD, DEAD)
    bench.file.write("dns", 0)
    bench.prober.rewrite(bench.vip.vips, bench.vip.prober)
    assert bench.file.read("dns") == Weight.FAULT, "written anew, as it was"
    (vip,) = bench.vip.vips
    assert vip.probe is not None
    moved = vip.model_copy(update={"probe": vip.probe.model_copy(update={"tcp": "127.0.0.1:10"})})
    bench.prober.rewrite((moved,), bench.vip.prober)
    assert (bench.file.read("dns"), bench.patient.dead) == (Weight.SERVING, False)
    bench.prober.keep_only(set())
    assert not bench.prober.patients


def test_a_file_that_cannot_be_written_stops_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        msg = "no space left"
        raise StepFailedError(msg)

    monkeypatch.setattr(bench.file, "write", full)
    bench.looks(DEAD, DEAD)
    assert bench.patient.counts.bad


@pytest.mark.parametrize(
    ("probe", "kind", "address"),
    [({"dns": "a.example."}, "dns", "127.0.0.1:53"), ({"tcp": "127.0.0.1:9"}, "tcp", "127.0.0.1:9"), ({"http": "http://127.0.0.1:8/x"}, "http", "127.0.0.1:8")],
)
def test_what_is_asked_follows_from_the_config(bench: Bench, probe: dict[str, str], kind: str, address: str) -> None:
    (vip,) = bench.vip.vips
    assert vip.probe is not None
    found = target_of(type(vip.probe).model_validate(probe))
    assert (found.kind, found.address) == (kind, address)
