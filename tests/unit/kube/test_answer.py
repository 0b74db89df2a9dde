from __future__ import annotations

import json

import pytest

from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube import answer
from edgekeeper.kube.errors import Absent, Blocked, Conflict, Expired, Forbidden, Invalid, Unreachable
from edgekeeper.kube.objects import EndpointSlice, HTTPRoute, Ingress, Lease, Node, ObjectMeta, Pod, PodEviction, created, key, meta

S = "https://192.0.2.1:6443"


@pytest.mark.parametrize(
    ("code", "kind"),
    [(400, Invalid), (401, Forbidden), (403, Forbidden), (404, Absent), (409, Conflict), (410, Expired), (422, Invalid), (429, Blocked), (301, Unreachable), (503, Unreachable)],
)  # fmt: skip
def test_each_refusal_has_its_error_which_says_who_what_and_why(code, kind):
    raw = json.dumps({"message": "because \x1b[2J of it", "code": code}).encode()
    err = answer.refusal(code, raw, server=S, doing="list ingresses")
    assert isinstance(err, kind)
    assert isinstance(err, EdgekeeperError)
    assert all(word in str(err) for word in (S, "list ingresses", "because \\x1b[2J of it", str(code)))


def test_a_missing_right_names_what_would_give_it():
    assert "deploy/kubernetes/rbac/" in str(answer.refusal(403, b"{}", server=S, doing="list pods"))


@pytest.mark.parametrize("why", ["unable to create new content in namespace a because it is being terminated", "exceeded quota: q, requested: count/events=1"])
def test_a_namespace_that_takes_nothing_is_no_missing_right(why):
    raw = ('{"message": "events \\"x\\" is forbidden: ' + why + '"}').encode()
    assert "rbac" not in str(answer.refusal(403, raw, server=S, doing="create events"))


@pytest.mark.parametrize(
    ("header", "raw", "expected"),
    [("7", b"{}", 7.0), ("", b'{"details":{"retryAfterSeconds":3}}', 3.0), ("", b'{"details":null}', None), ("Mon, 1 Jan", b"[]", None), ("", b"\xff no json", None)],
)  # fmt: skip
def test_when_to_come_again(header, raw, expected):
    err = answer.refusal(429, raw, server=S, doing="evict", again=header)
    assert isinstance(err, Blocked)
    assert err.again_s == expected


def test_paths():
    assert answer.path(Ingress, None) == "/apis/networking.k8s.io/v1/ingresses"
    assert answer.path(Ingress, "shop", "web", "status") == "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/web/status"
    assert answer.path(Node, None, "a") == "/api/v1/nodes/a"
    assert answer.path(Node, "shop", "a") == "/api/v1/nodes/a"
    assert answer.path(PodEviction, "shop", "web-1") == "/api/v1/namespaces/shop/pods/web-1/eviction"
    assert answer.path(HTTPRoute, "shop") == "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes"
    assert (answer.named(PodEviction), answer.named(HTTPRoute)) == ("pods/eviction", "httproutes.gateway.networking.k8s.io")


@pytest.mark.parametrize("name", ["../secrets", "a/b", "..", "a\nb", "a\x00"])
def test_a_name_is_one_part_of_the_path(name):
    with pytest.raises(ValueError, match="cannot be a path"):
        answer.path(Pod, "shop", name)


def test_an_object_in_a_namespace_is_never_asked_for_in_all_of_them():
    with pytest.raises(ValueError, match="without its namespace"):
        answer.path(Pod, None, "web-1")


def test_null_where_a_list_is_meant_is_read():
    raw = b'{"metadata":{"resourceVersion":"9"},"items":[{"addressType":"IPv4","endpoints":null,"ports":null,"metadata":{"name":"a"}}]}'
    items, version, go_on = answer.page(EndpointSlice, raw, S)
    assert (items[0].endpoints, version, go_on) == (None, "9", "")
    assert answer.page(EndpointSlice, b'{"metadata":{},"items":null}', S) == ([], "", "")


@pytest.mark.parametrize("stamp", ["0000-01-01T00:00:00Z", "0000-02-29T23:59:59.999999Z"])
def test_a_time_in_the_year_0_makes_no_list_unreadable(stamp):
    odd = {"metadata": {"name": "odd", "annotations": {"a": f'say "{stamp}"'}}, "spec": {"renewTime": stamp}}
    items, _, _ = answer.page(Lease, json.dumps({"items": [odd, {"metadata": {"name": "b"}}]}).encode(), S)
    assert [key(one)[1] for one in items] == ["odd", "b"]
    assert items[0].spec.renewTime.year == 4
    assert meta(items[0]).annotations == {"a": f'say "{stamp}"'}
    assert answer.one(Lease, json.dumps(odd).encode(), S) == items[0]


def test_what_is_no_object_is_told_and_not_used():
    for raw in (b"<html>", b'{"items":[{"spec":{"rules":7}}]}', b""):
        with pytest.raises(Unreachable, match="cannot be read"):
            answer.page(Ingress, raw, S)


def test_a_kind_that_nobody_described_is_read_and_written_as_it_is():
    item = {"metadata": {"name": "r", "namespace": "shop"}, "spec": {"hostnames": ["a.example"], "unknown": {"x": None}}}
    (route,), _, _ = answer.page(HTTPRoute, json.dumps({"items": [item]}).encode(), S)
    assert (route["spec"]["hostnames"], key(route)) == (["a.example"], ("shop", "r"))
    assert json.loads(answer.body(route)) == {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", **item}


def test_an_object_is_written_with_what_it_is():
    assert json.loads(answer.body(Pod(metadata=ObjectMeta(name="a")))) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    assert json.loads(answer.change(Pod, {"metadata": {}}, "apply")) == {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    assert json.loads(answer.change(Pod, [{"op": "remove"}], "json")) == [{"op": "remove"}]


def test_readers_of_what_is_not_there():
    assert key(Pod()) == ("", "")
    assert (created(None), created(meta(Pod()))) == (0.0, 0.0)
    (pod,), _, _ = answer.page(Pod, b'{"items":[{"metadata":{"creationTimestamp":"2026-11-30T12:00:00Z"}}]}', S)
    assert created(pod.metadata) == 1796040000.0
