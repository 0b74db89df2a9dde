from __future__ import annotations

from dataclasses import replace

import pytest

from edgekeeper.watch.pods import SINCE_MOST_S, Pod, Workload, chosen, forbidden, missing, started_since, unfinished

A = Pod("proxy-a", "1", "rs", "node-a", started=100.0)
B = Pod("proxy-b", "2", "rs", "node-b", started=100.0)


def test_one_means_one_here_means_this_node_and_all_means_all() -> None:
    assert chosen("edge/app=proxy", [A], "one", "node-a") == (A,)
    assert chosen("edge/app=proxy", [B, A], "one", "node-a") == (
        "there are 2 pods edge/app=proxy (proxy-a, proxy-b); say which: here or which: all, or name one"
    )
    assert chosen("edge/app=proxy", [A, B], "here", "node-b") == (B,)
    assert chosen("edge/app=proxy", [A, B], "here", "node-c") == "there is no pod edge/app=proxy on the cluster's node node-c"
    assert chosen("edge/app=proxy", [B, A], "all", "node-a") == (A, B)
    assert chosen("edge/app=proxy", [], "all", "") == "there is no pod edge/app=proxy"


def test_what_has_ended_or_is_about_to_does_not_count() -> None:
    assert chosen("x", [A, replace(B, phase="Succeeded")], "one", "") == (A,)
    assert chosen("x", [A, replace(B, leaving=True)], "one", "") == (A,)
    assert chosen("x", [replace(B, leaving=True)], "one", "") == "there is no pod x; proxy-b is being deleted already"


@pytest.mark.parametrize(("pod", "word"), [(replace(A, owner=""), "has no controller"), (replace(A, static=True), "is a static pod")])
def test_a_pod_that_would_not_come_back_is_never_deleted(pod: Pod, word: str) -> None:
    assert word in str(chosen("x", [pod], "one", ""))
    assert word in str(chosen("x", [B, pod], "all", ""))


def test_a_pod_that_is_younger_than_the_evidence_has_to_fail_again() -> None:
    assert started_since([A], 99.0) == "pod proxy-a was started after the probe had failed; it has to fail again"
    assert started_since([A], 101.0) is None
    assert started_since([A], 100.0 - SINCE_MOST_S - 1) is None, "its clock is wrong"
    assert started_since([replace(A, started=None)], 99.0) is None


def test_as_many_others_of_the_same_controller_must_be_ready() -> None:
    before = {"1", "2"}
    assert missing([A], before, [B]) == "0 of 1 new pods are ready; no other has come", "one that was there before is no new one"
    assert missing([A], before, [B, replace(A, name="proxy-c", uid="3", ready=False, phase="Pending")]) == (
        "0 of 1 new pods are ready; pod proxy-c is Pending and not ready"
    )
    assert missing([A], before, [replace(A, uid="3", owner="other")]) == "0 of 1 new pods are ready; no other has come"
    assert missing([A], before, [replace(A, uid="3", leaving=True)]) is not None
    assert missing([A], before, [A, replace(A, uid="3")]) is None, "an old one that does not end is no matter"
    assert missing([A, B], before, [replace(A, uid="3")]) == "1 of 2 new pods are ready; no other has come"


def test_a_workload_that_a_rollout_would_not_restart_is_left_alone() -> None:
    well = Workload(2)
    assert forbidden("deployment edge/x", well, 10.0, ours=False) is None
    for one in (replace(well, wanted=0), replace(well, paused=True), replace(well, on_delete=True), replace(well, restarted=11.0)):
        assert forbidden("deployment edge/x", one, 10.0, ours=False) is not None
    assert forbidden("deployment edge/x", replace(well, wanted=0, restarted=11.0), 10.0, ours=True) is None
    assert forbidden("deployment edge/x", replace(well, restarted=9.0), 10.0, ours=False) is None


def test_a_rollout_is_done_when_all_pods_are_new_and_ready_and_no_old_one_is_left() -> None:
    done = Workload(2, total=2, updated=2, ready=2)
    assert unfinished(done) is None
    assert unfinished(replace(done, seen=False)) == "its controller has not seen it yet"
    assert unfinished(replace(done, updated=1)) == "1 of 2 pods are new"
    assert unfinished(replace(done, ready=1)) == "1 of 2 new pods are ready"
    assert unfinished(replace(done, total=3)) == "1 old pods are still there"
