"""Kubernetes as the engine of a drill: it is one program whatever the suite, and a missing one names what puts it there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.lab.engines import KUBERNETES, find


def test_it_is_found_by_its_folder_and_says_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("etcd", KUBERNETES):
        file = tmp_path / name
        file.write_text("#!/bin/sh\necho Kubernetes v1.33.1\n", encoding="ascii")
        file.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    found = asyncio.run(find("testing", KUBERNETES))
    assert (found.version, found.numbers, found.title) == ("1.33.1", (1, 33, 1), "Kubernetes 1.33.1")
    assert found == asyncio.run(find("debian12", KUBERNETES))


def test_a_missing_one_names_what_puts_it_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(MissingError, match="script/kube-assets"):
        asyncio.run(find("testing", KUBERNETES))
