"""A section of the config to its parts: nothing that is said is lost on the way, and what cannot be used is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.ops import Ops, Peer
from edgekeeper.config.watch import Container, Watch
from edgekeeper.errors import UsageError
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.budget import Bucket, Budget, Window, spend
from edgekeeper.watch import build
from edgekeeper.watch.fingerprint import Burst
from edgekeeper.watch.onbehalf import HEARD_S, PeerAsker
from edgekeeper.watch.presets import merged
from edgekeeper.watch.siblings import Place, Siblings

HERE = build.Here("edge-a", Kubernetes.model_validate({"kubeconfig": "/nowhere/config"}))


def watch(**said: Any) -> Watch:
    return merged(Watch.model_validate({"name": "web", "docker": "proxy", "fingerprints": ["it is stuck"], **said}))


def test_every_word_about_deciding_arrives() -> None:
    probe = {"targets": ["tcp://192.0.2.1:1"], "every": "2s", "timeout": "3s", "rounds": 4, "confirm_every": "5s", "failures": 6, "grace": "7s"}
    found = build.policy(
        watch(
            probe=probe,
            burst={"lines": 8, "distinct": 2, "within": "9s"},
            cure=["docker", {"systemd": "a"}],
            proof={"every": "10s", "within": "11s"},
            shadow=True,
        )
    )
    assert (found.every_s, found.timeout_s, found.rounds, found.confirm_every_s, found.failures, found.grace_s) == (2.0, 3.0, 4, 5.0, 6, 7.0)
    assert (found.burst, found.steps, found.proof_every_s, found.proof_within_s, found.shadow) == (Burst(8, 2, 9.0), 2, 10.0, 11.0, True)
    assert (found.confirm, found.probed) == (True, True)
    plain = build.policy(watch(confirm="none"))
    assert (plain.confirm, plain.probed, plain.steps, plain.burst, plain.shadow) == (False, False, 1, Burst(1, 1, 10.0), False)


def test_the_budget_by_default_is_three_then_one_a_minute_and_six_an_hour_and_a_cooldown_comes_on_top() -> None:
    found = build.budget(watch().budget)
    assert found == Budget((Bucket(3, 60.0), Window(6, 3600.0)), pause_s=60.0)
    times, now = [], 1000.0
    while now < 1000 + 3600:
        answer = spend(found, now)
        found = answer.budget
        times += [now] if answer.allowed else []
        now += 1.0
    assert len(times) == 6
    assert times[2] == 1002.0
    assert Window(1, 30.0) in build.budget(watch(budget={"cooldown": "30s"}).budget).rules


def test_watches_of_a_group_share_a_budget_and_others_have_their_own() -> None:
    group = {"name": "mesh", "members": ["edge-a", "edge-b"]}
    assert build.budget_key(watch()) != build.budget_key(watch(name="other"))
    assert build.budget_key(watch(group=group)) == build.budget_key(watch(name="other", group=group))
    assert build.budget_key(watch(name="mesh")) != build.budget_key(watch(group=group)), "a watch that is named like a group is another"


def test_a_container_is_found_by_what_is_said() -> None:
    def which(**said: str) -> Any:
        return build.which(Container.model_validate(said))

    assert (which(name="a").name, which(name="a").label, which(name="a").image) == ("a", (), None)
    assert which(label="role").label == (("role", ""),)
    assert which(label="role=a=b").label == (("role", "a=b"),)
    assert which(image="proxy:1").image == "proxy:1"


def test_fingerprints_that_cannot_be_used_are_told_with_the_watch_that_has_them() -> None:
    with pytest.raises(UsageError, match=r"watch web: fingerprints: .*\(unclosed"):
        build.matcher(watch(fingerprints=[{"regex": "(unclosed"}]))
    matcher = build.matcher(watch(fingerprints=["stuck", {"regex": "hung (up|down)"}], untrusted_after=[" path="]))
    assert matcher is not None
    hits = matcher.hits(b"it is stuck\nGET path=/stuck\nit hung down\nall is well\n")
    assert [hit.name for hit in hits] == ["stuck", "hung (up|down)"]
    assert build.matcher(watch(fingerprints=None, docker=None, cure={"systemd": "a"}, probe="tcp://192.0.2.1:1")) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"probe": "tcp://192.0.2.1"}, r"watch web: probe\.targets: "),
        ({"guard": {"reachable": ["dns://192.0.2.1"]}}, r"watch web: guard\.reachable: "),
        ({"guard": {"zone": "Europe/Nowhere"}}, "Europe/Nowhere"),
    ],
)
def test_what_could_never_be_asked_is_refused_with_its_place(tmp_path: Path, said: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        build.parts(watch(**said), SystemClock(), tmp_path, tmp_path, HERE)


def test_each_kind_of_cure_and_source_is_made_and_nothing_is_touched(tmp_path: Path) -> None:
    cure = [
        "docker",
        {"docker": "other", "stop_timeout": "1s"},
        {"systemd": "a.service"},
        {"command": ["reboot", "now"]},
        {"http": "http://127.0.0.1:1/restart"},
        {"netbird_clients": "http://127.0.0.1:8444"},
    ]
    parts = build.parts(watch(cure=cure), SystemClock(), tmp_path, tmp_path, HERE)
    assert [one.name for one in parts.cures][:4] == ["docker restart proxy", "docker restart other", "systemd restart a.service", "command reboot"]
    assert len(parts.cures) == parts.policy.steps == 6
    for source in ({"file": str(tmp_path / "log")}, {"journald": "a.service"}, {"command": ["tail", "-F", "x"]}):
        assert build.parts(watch(docker=None, cure={"systemd": "a"}, **source), SystemClock(), tmp_path, tmp_path, HERE).source is not None
    assert build.parts(watch(), SystemClock(), tmp_path, tmp_path, HERE).asker is None
    assert list(tmp_path.iterdir()) == []


def test_a_cure_keeps_its_own_words(tmp_path: Path) -> None:
    cure = [{"docker": "proxy", "stop_timeout": "1s"}, {"http": "http://127.0.0.1:1/", "method": "PUT", "token_file": "/etc/token", "timeout": "7s"}]
    docker, http = build.parts(watch(cure=cure), SystemClock(), tmp_path, tmp_path, HERE).cures
    assert vars(docker)["_stop_timeout"] == 1.0
    assert (vars(http)["_method"], vars(http)["_token_file"], vars(http)["_deadline_s"]) == ("PUT", "/etc/token", 7.0)


@pytest.mark.parametrize(("who", "asked"), [("peer", True), ("edge-a", True), ("edge-b", False), ("node", False)])
def test_siblings_are_asked_where_that_is_wanted_and_their_answers_may_be_as_old_as_they_are(tmp_path: Path, who: str, *, asked: bool) -> None:
    written = watch(
        probe={"targets": ["tcp://192.0.2.1:1"], "from": who, "every": "2s", "timeout": "3s"}, group={"name": "mesh", "members": ["edge-a", "edge-b"]}
    )
    made = build.asked_by_siblings(written, build.parts(written, SystemClock(), tmp_path, tmp_path, HERE), _place())
    assert isinstance(made.asker, PeerAsker) == asked
    assert made.policy.timeout_s == (2.0 + 3.0 + HEARD_S if asked else 3.0)


def _place() -> Place:
    """Of edge-b, beside edge-a."""
    nodes = {name: Peer(address="192.0.2.1", ops="http://127.0.0.1:1") for name in ("edge-a", "edge-b")}  # type: ignore[call-arg]
    siblings = Siblings("edge-b", nodes, Ops(), SystemClock(), nodes)  # type: ignore[call-arg]
    return siblings.place("web", "mesh", ("edge-a", "edge-b"))
