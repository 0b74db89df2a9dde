from __future__ import annotations

from types import SimpleNamespace as Thing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.expose.claims import of_ingress, of_route, status_of

PREFIX = "edgekeeper.io"


def ingress(rules: Any = None, klass: Any = None, annotations: Any = None) -> Any:
    return Thing(metadata=Thing(namespace="shop", name="web", uid="u", annotations=annotations), spec=Thing(rules=rules, ingressClassName=klass))


def test_an_ingress_asks_for_the_hosts_of_its_rules_and_names_its_class_in_either_way():
    rules = [Thing(host="a.example"), Thing(host=None), Thing(host="a.example")]
    old = {"kubernetes.io/ingress.class": "old"}
    claim = of_ingress(ingress(rules, None, old), PREFIX, 5.0)
    assert (claim.hosts, claim.klass, claim.origin.text, claim.origin.created) == (("a.example", ""), "old", "Ingress shop/web", 5.0)
    assert of_ingress(ingress(rules, "new", old), PREFIX, 5.0).klass == "new"


def test_of_the_annotations_only_ours_are_kept_and_what_edgekeeper_writes_is_no_change():
    before = ingress([], None, {"edgekeeper.io/adopt": "true", "other.example/x": "y"})
    after = ingress([], None, {"edgekeeper.io/adopt": "true", "other.example/x": "z", "edgekeeper.io/expose-status": "{}"})
    assert of_ingress(before, PREFIX, 1.0) == of_ingress(after, PREFIX, 1.0)
    assert of_ingress(before, PREFIX, 1.0).annotations == {"edgekeeper.io/adopt": "true"}
    assert (status_of(before, PREFIX), status_of(after, PREFIX)) == ("", "{}")


def test_a_route_of_several_gateways_belongs_to_the_first_that_is_known():
    parents = [{"name": "mesh", "kind": "Service"}, {"name": "internal"}, {"name": "public", "kind": "Gateway"}]
    item = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"hostnames": ["a.example"], "parentRefs": parents}}
    assert of_route(item, "TLSRoute", PREFIX, 1.0, {"public"}).klass == "public"
    assert of_route(item, "TLSRoute", PREFIX, 1.0, {"other"}).klass == "internal"


def test_a_field_of_another_kind_than_it_should_be_is_read_as_none():
    item = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"hostnames": "a.example", "parentRefs": 5}}
    assert (of_route(item, "HTTPRoute", PREFIX, 1.0, ()).hosts, of_route(item, "HTTPRoute", PREFIX, 1.0, ()).klass) == ((), "")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["hostnames", "parentRefs", "name", "kind", "annotations", "rules", "host"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=12)
@given(anything, anything)
def test_whatever_a_definition_admits_an_object_is_never_left_out(spec, annotations):
    item = {"metadata": {"namespace": "shop", "name": "web", "annotations": annotations}, "spec": spec}
    for claim in (of_route(item, "HTTPRoute", PREFIX, 1.0, ()), of_ingress(item, PREFIX, 1.0)):
        assert (claim.origin.namespace, claim.origin.name) == ("shop", "web")
        assert all(isinstance(host, str) for host in claim.hosts)
        assert isinstance(claim.klass, str)


def test_a_long_status_is_seen_in_full_or_it_would_be_written_again_for_ever():
    text = "{" + ",".join(f'"host{i}.home.example":"active"' for i in range(50)) + "}"
    assert status_of({"metadata": {"annotations": {f"{PREFIX}/expose-status": text}}}, PREFIX) == text
