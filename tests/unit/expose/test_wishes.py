from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.config.expose import Expose
from edgekeeper.expose.kinds import Claim, Origin
from edgekeeper.expose.wishes import wishes


def expose(targets: dict[str, str] | None = None, classes: tuple[str, ...] = ()) -> Expose:
    return Expose.model_validate(
        {
            "owner": "home",
            "netbird": {"url": "https://netbird.example", "token_env": "T"},
            "targets": targets or {"default": "192.0.2.1"},
            "sources": {"classes": list(classes)},
        }
    )


EXPOSE = expose()


def claim(name: str, *hosts: str, created: float = 1.0, klass: str = "", kind: str = "Ingress", **said: str) -> Claim:
    return Claim(Origin(kind, "shop", name, f"u-{name}", created), hosts, klass, {f"edgekeeper.io/{key.replace('_', '-')}": text for key, text in said.items()})


def told(made) -> list[tuple[str, str]]:
    return [(remark.origin.name, remark.reason) for remark in made.remarks]


def test_hosts_are_small_without_a_final_dot_and_each_once():
    made = wishes([claim("web", "WWW.Example.", "www.example", "api.example")], EXPOSE)
    assert list(made.by_host) == ["www.example", "api.example"]
    assert not made.remarks
    assert made.by_host["www.example"].klass == "default"


def test_what_cannot_be_published_is_told_and_the_rest_of_the_object_is_published():
    bad = ["*.example", "", "192.0.2.1", "[2001:db8::1]", "a_b.example", "\u212aube.example", "bücher.example", "www.example:443"]
    made = wishes([claim("web", "www.example", *bad[:5]), claim("odd", *bad[5:])], EXPOSE)
    assert list(made.by_host) == ["www.example"]
    assert told(made) == [
        *(("odd", "BadHost"),) * 3,
        ("web", "WildcardHost"), ("web", "NoHost"), ("web", "BadHost"), ("web", "BadHost"), ("web", "BadHost"),
    ]  # fmt: skip


def test_the_oldest_has_the_host_and_the_other_is_told_who():
    made = wishes([claim("a", "www.example", created=2.0), claim("b", "www.example", "b.example", created=1.0)], EXPOSE)
    assert {host: wish.origin.name for host, wish in made.by_host.items()} == {"www.example": "b", "b.example": "b"}
    assert told(made) == [("a", "HostTaken")]
    assert "Ingress shop/b" in made.remarks[0].text
    even = wishes([claim("b", "www.example"), claim("a", "www.example")], EXPOSE)
    assert even.by_host["www.example"].origin.name == "a"
    file = wishes([claim("b", "www.example"), claim("f", "www.example", kind="File", created=0.0)], EXPOSE)
    assert file.by_host["www.example"].origin.name == "f"


def test_an_object_that_is_switched_off_or_leads_nowhere_takes_no_host_from_others():
    config = expose({"public": "192.0.2.1"})
    made = wishes(
        [claim("off", "www.example", klass="public", created=1.0, enabled="false"), claim("lost", "www.example", klass="internal", created=2.0), claim("web", "www.example", klass="public", created=3.0)],
        config,
    )  # fmt: skip
    assert made.by_host["www.example"].origin.name == "web"
    assert told(made) == [("lost", "NoTarget")]


def test_a_class_leads_to_its_own_target_else_to_the_default_one_and_others_can_be_left_alone():
    config = expose({"public": "192.0.2.1", "default": "192.0.2.2"}, ("public", "other"))
    made = wishes([claim("a", "a.example", klass="public"), claim("b", "b.example", klass="other"), claim("c", "c.example", klass="third")], config)
    assert {host: wish.klass for host, wish in made.by_host.items()} == {"a.example": "public", "b.example": "default"}
    assert not made.remarks


def test_a_restriction_that_cannot_be_read_holds_the_hosts_and_keeps_them_from_others():
    made = wishes([claim("web", "www.example", allow_cidrs="nobody"), claim("young", "www.example", created=2.0)], EXPOSE)
    assert made.by_host["www.example"].options.hold
    assert told(made) == [("web", "BadAnnotation"), ("young", "HostTaken")]


names = st.sampled_from(["a", "b", "c"])
hosts = st.lists(st.sampled_from(["www.example", "WWW.example.", "*.example", "api.example", ""]) | st.text(max_size=12), max_size=3).map(tuple)
claims = st.builds(
    lambda n, h, c, k, v: Claim(Origin("Ingress", "ns", n, n, c), h, k, {"edgekeeper.io/enabled": v} if v else {}),
    names, hosts, st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from(["", "x"]), st.sampled_from(["", "false", "\x1b[2J"]),
)  # fmt: skip


@settings(max_examples=12)
@given(st.lists(claims, max_size=3, unique_by=lambda one: one.origin.name), st.integers(0, 5))
def test_the_order_changes_nothing_and_no_text_injects_anything(some, turn):
    others = list(itertools.permutations(some))[turn % math.factorial(len(some))]
    made = wishes(some, EXPOSE)
    assert made == wishes(others, EXPOSE)
    assert list(made.by_host) == list(wishes(others, EXPOSE).by_host)
    for host in made.by_host:
        assert set(host) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert all(remark.text.isprintable() and len(remark.text) < 1000 for remark in made.remarks)


@settings(max_examples=12)
@given(hosts, st.dictionaries(st.text(max_size=12).map("edgekeeper.io/".__add__), st.text(max_size=12), max_size=3))
def test_one_bad_object_affects_only_itself(its_hosts, annotations):
    good = claim("good", "good.example", created=1.0)
    bad = Claim(Origin("Ingress", "ns", "bad", "bad", 2.0), its_hosts, "", annotations)
    made = wishes([bad, good], EXPOSE)
    assert made.by_host["good.example"] == wishes([good], EXPOSE).by_host["good.example"]
    assert all(remark.origin.name == "bad" for remark in made.remarks)
