"""The lab's Kubernetes, as far as it goes without its programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.lab.drills.kubelet import served_again
from edgekeeper.lab.kube import Cluster, assets
from edgekeeper.lab.kubeask import answer


def program(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_programs_that_are_named_come_before_those_of_the_cache_and_what_is_missing_is_said_with_its_remedy(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("EDGEKEEPER_KUBE", str(tmp_path / "kube"))
    with pytest.raises(MissingError, match=r"etcd, kube-apiserver not found in .*; run script/kube-assets"):
        assets()
    ours = program(tmp_path / "kube" / "bin", "etcd", "kube-apiserver")
    assert assets() == ours
    with pytest.raises(MissingError, match="kube-controller-manager, kube-scheduler not found"):
        assets(controllers=True)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(program(tmp_path / "theirs", "etcd")))
    with pytest.raises(MissingError, match=r"^kube-apiserver not found in .*, which KUBEBUILDER_ASSETS names"):
        assets()


@pytest.mark.parametrize(("version", "gates"), [((1, 20), 1), ((1, 21), 1), ((1, 22), 0), ((1, 34), 0)])
def test_a_newer_kubernetes_gets_no_gates_that_it_does_not_know(tmp_path, version, gates) -> None:
    cluster = Cluster(tmp_path)
    cluster.version = version
    assert len(cluster._gates) == gates


def test_an_answer_is_its_status_and_its_object() -> None:
    assert answer(b'HTTP/1.0 200 OK\r\nx: y\r\n\r\n{"kind": "Pod"}').body == {"kind": "Pod"}
    assert answer(b"HTTP/1.0 503 Unavailable\r\n\r\nnot yet").body == {"message": "not yet"}
    assert answer(b"").status == 0


def test_a_client_is_served_again_with_the_first_thing_of_after_the_freeze_that_it_learns_of() -> None:
    made = [("a", 1.0), ("b", 11.0), ("c", 12.0)]
    assert served_again({"a": 30.0, "b": 14.0, "c": 13.5}, made, 10.0, 40.0) == 3.5
    assert served_again({"a": 11.0}, made, 10.0, 40.0) == 30.0, "never: until the end"
