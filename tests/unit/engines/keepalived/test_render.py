"""What is written into keepalived.conf, read back by a small reader that knows nothing of how it was written."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.keepalived import CASES, EVIL, FEATURES, GOLDEN, PROGRAM, SEAT, configs, load_case, of, root_of, topology

from edgekeeper.engines.keepalived import render
from edgekeeper.engines.keepalived.quote import word, words
from edgekeeper.engines.keepalived.topology import Topology
from edgekeeper.errors import RefusedError

Block = list[tuple[list[str], Any]]


def read(text: str) -> Block:
    """Lines of words with the blocks that follow them, as keepalived's manual tells; anything that it would expand or cut is a mistake here."""
    assert not set("$!#@~'\\\t\r\0") & set(text)
    assert text.isascii()
    here: Block = []
    above: list[Block] = []
    for line in text.split("\n"):
        parts = line.split('"')
        assert len(parts) in (1, 3)
        found = [*parts[0].split(), *([parts[1]] if len(parts) == 3 else [])]
        if len(parts) == 3:
            assert parts[2] == ""
            assert not set("{}") & set(parts[1])
        if found == ["}"]:
            here = above.pop()
        elif found and found[-1] == "{":
            inner: Block = []
            here.append((found[:-1], inner))
            above.append(here)
            here = inner
        elif found:
            assert not any(brace in each for each in found for brace in "{}")
            here.append((found, None))
    assert not above
    return here


def said(block: Block) -> dict[str, list[str]]:
    """The lines of a block that have no block of their own; none is there twice."""
    plain = {found[0]: found[1:] for found, inner in block if inner is None}
    assert len(plain) == sum(inner is None for _, inner in block)
    return plain


def inner(block: Block) -> dict[str, list[list[str]]]:
    """The blocks in a block: their lines."""
    nested = {found[0]: [line for line, none in lines if none is None] for found, lines in block if lines is not None}
    assert len(nested) == sum(lines is not None for _, lines in block)
    return nested


def text_of(wanted: Topology, version: str = "2.3.4") -> str:
    return render.files(wanted, SEAT, FEATURES[version])[render.FILE]


@pytest.mark.parametrize("name", CASES)
def test_the_golden_files_are_what_is_rendered(name: str, request: pytest.FixtureRequest) -> None:
    case = load_case(name)
    found = render.files(case.topology, SEAT, case.features)[render.FILE]
    if request.config.getoption("--update-golden"):
        (GOLDEN / name / f"{case.node}.conf").write_text(found, encoding="utf-8")
    else:
        assert found == case.text


def test_every_golden_case_has_one_file_and_there_are_all() -> None:
    assert {name: sorted(p.name for p in (GOLDEN / name).iterdir()) for name in CASES} == {
        name: sorted(["config.yaml", f"{load_case(name).node}.conf"]) for name in CASES
    }
    assert {"two-vips-node-a", "two-vips-node-c", "legacy", "hmac", "preempt-delay", "ipv6", "subsecond"} <= set(CASES)


def test_two_vips_rest_on_different_nodes() -> None:
    assert [i.priority for i in load_case("two-vips-node-a").topology.instances] == [200, 180]
    assert [i.priority for i in load_case("two-vips-node-c").topology.instances] == [180, 200]


@settings(max_examples=12, deadline=None)
@given(configs(most_nodes=4, most_vips=4), st.sampled_from(list(FEATURES)))
def test_what_is_asked_for_is_written_and_nothing_else(config: dict[str, Any], version: str) -> None:
    vip, nodes, node = config["vip"], list(config["nodes"]), config["node"]
    root = root_of(config)
    assert root.vip is not None
    found = read(text_of(of(root, node, FEATURES[version]), version))
    heads = [found[0] for found in found]
    names = [one["name"] for one in vip["vips"]]
    first: list[tuple[dict[str, str], str]] = []  # who asks the same follows the first one's script
    for one in vip["vips"]:
        if one["probe"] != "none" and asked(one["probe"]) not in [words for words, _ in first]:
            first.append((asked(one["probe"]), one["name"]))
    own = {name for _, name in first}
    wanted = [["global_defs"]]
    for one in vip["vips"]:
        script = [["vrrp_script", f"chk_{one['name']}"]] if one["name"] in own else []
        files = [["track_file", f"tf_{one['name']}"], ["track_file", f"hf_{one['name']}"]]
        wanted += [*files, *script, ["vrrp_instance", f"VI_{one['name']}"]]
    assert heads == wanted
    at = {tuple(head): block for head, block in found}
    general = said(at["global_defs",])
    assert general["router_id"] == [node]
    assert general["enable_script_security"] == []
    assert general["vrrp_notify_fifo_script"] == [f"/usr/bin/true vip fifo --node {node}"]
    for position, (one, name) in enumerate(zip(vip["vips"], names, strict=True)):
        block = at["vrrp_instance", f"VI_{name}"]
        plain, nested = said(block), inner(block)
        idx = nodes.index(node) if position % 2 == 0 else len(nodes) - 1 - nodes.index(node)
        six = ":" in one["address"]
        key = "address6" if six else "address"
        interface = one.get("interface", vip["interface"])
        preempt: dict[str, list[str]] = {}
        if vip["preempt"] is False:
            preempt = {"nopreempt": []}
        elif vip["preempt"] is not True:
            assert float(plain["preempt_delay"][0]) == pytest.approx(root.vip.preempt)
            preempt = {"preempt_delay": plain["preempt_delay"]}
        assert float(plain["advert_int"][0]) == pytest.approx(root.vip.advert, abs=0.005)
        assert plain == {
            "state": ["BACKUP"],
            "interface": [interface],
            "virtual_router_id": [str(one["vrid"])],
            "priority": [str(vip["base"] - vip["step"] * idx)],
            "advert_int": plain["advert_int"],
            **preempt,
            "unicast_src_ip": [config["nodes"][node][key]],
            "unicast_fault_no_peer": [],
            "check_unicast_src": [],
        }
        script = {} if one["probe"] == "none" else {"track_script": [[f"chk_{next(by for words, by in first if words == asked(one['probe']))}"]]}
        assert nested == {
            "unicast_peer": [[config["nodes"][other][key]] for other in nodes if other != node],
            "virtual_ipaddress": [[one["address"], "dev", interface]],
            "track_file": [[f"tf_{name}"], [f"hf_{name}"]],
            **script,
        }
        for kind, file in (("tf", "weight"), ("hf", "health")):
            assert said(at["track_file", f"{kind}_{name}"]) == {"file": [f"{SEAT.folder}/{file}-{name}"], "weight": ["-1"], "init_file": ["0"]}
        if name in own:
            lines = said(at["vrrp_script", f"chk_{name}"])
            called = lines["script"][0].split(" ")
            assert called[: len(PROGRAM) + 4] == [*PROGRAM, "vip", "probe", "--vip", name]
            assert called[-2:] == ["--peers", f"{SEAT.folder}/peers.json"]
            given_words = dict(zip(called[5:-2:2], called[6:-2:2], strict=True))
            assert given_words == asked(one["probe"])
            assert {k: v for k, v in lines.items() if k != "script"} == {
                "interval": [str(vip["script"]["interval"])], "timeout": ["1"], "fall": [str(vip["script"]["fall"])],
                "rise": [str(vip["script"]["rise"])], "weight": ["0"],
            }  # fmt: skip


def asked(probe: dict[str, Any]) -> dict[str, str]:
    """The words that the track script is given."""
    if "tcp" in probe:
        return {"--tcp": probe["tcp"]}
    if "http" in probe:
        return {"--http": probe["http"]}
    more = {"--dnsdist-api": probe["dnsdist_api"], "--dnsdist-api-key-file": probe["dnsdist_api_key_file"]} if "dnsdist_api" in probe else {}
    counted = {"--require-backends": str(probe["require_backends"])} if more else {}
    return {"--dns": probe["server"], "--qname": probe["dns"].lower().removesuffix(".") + ".", "--qtype": probe["type"], **more, **counted}


@pytest.mark.parametrize("evil", [*EVIL, "", "x" * 513, "\u00e4"])
def test_no_character_that_means_something_ever_passes(evil: str) -> None:
    with pytest.raises(RefusedError, match="cannot stand in keepalived's configuration"):
        word(evil)
    with pytest.raises(RefusedError):
        words(("/usr/bin/true", evil))


@given(st.text(max_size=20))
def test_what_passes_is_one_word_as_it_is(text: str) -> None:
    try:
        passed: str | None = word(text)
    except RefusedError as err:
        passed, why = None, str(err)
    if passed is None:
        assert why.isprintable()
    else:
        assert read(f"router_id {passed}\n") == [(["router_id", text], None)]


@pytest.mark.parametrize("evil", ["x } evil {", "x\nevil", "$x", "x#"])
def test_every_text_of_a_topology_goes_through_the_gate(evil: str) -> None:
    """Also where nothing else has looked: a field that somebody adds is written through ``word``, or this fails."""
    wanted = topology({"probe": {"tcp": "127.0.0.1:80"}}, hmac_key_file="/k", features=FEATURES["2.4.3"])
    (instance,) = wanted.instances
    broken: list[Topology] = []
    for which in fields(instance):
        value = getattr(instance, which.name)
        if isinstance(value, str):
            broken.append(replace(wanted, instances=(replace(instance, **{which.name: evil}),)))
        elif isinstance(value, tuple):
            broken.append(replace(wanted, instances=(replace(instance, **{which.name: (*value, evil)}),)))
    broken += [replace(wanted, node=evil), replace(wanted, script_user=evil), replace(wanted, program=("/x", evil))]
    assert len(broken) == 11
    for one in broken:
        with pytest.raises(RefusedError):
            text_of(one, "2.4.3")
    with pytest.raises(RefusedError):
        render.files(wanted, replace(SEAT, folder=f"/run/{evil}"), FEATURES["2.4.3"])


def test_the_file_that_2_2_7_checks_differs_in_the_script_user_only() -> None:
    wanted = replace(topology(), script_user="keepalived_script")
    two = render.files(wanted, SEAT, FEATURES["2.2.7"])
    assert set(two) == {render.FILE, render.CHECKED}
    differ = [(a, b) for a, b in zip(two[render.FILE].splitlines(), two[render.CHECKED].splitlines(), strict=True) if a != b]
    assert differ == [("    script_user keepalived_script", "    script_user root")]
    assert set(render.files(wanted, SEAT, FEATURES["2.3.4"])) == {render.FILE}


def test_adverts_are_signed_where_keepalived_can_and_legacy_does_not_forbid() -> None:
    key: dict[str, Any] = {"hmac_key_file": "/etc/edgekeeper/vrrp-{vrid}.key"}
    signed = text_of(topology({"vrid": 7}, features=FEATURES["2.4.3"], **key), "2.4.3")
    assert inner({tuple(head): block for head, block in read(signed)}["vrrp_instance", "VI_v0"])["auth_hmac"] == [
        ["key", "1", "file:/etc/edgekeeper/vrrp-7.key"], ["active_key", "1"], ["anti_replay", "monotonic"],
    ]  # fmt: skip
    assert "auth_hmac" not in text_of(topology(features=FEATURES["2.3.4"], **key))
    assert "auth_hmac" not in text_of(topology(features=FEATURES["2.4.3"], legacy=True, **key), "2.4.3")
    assert "auth_hmac" not in text_of(topology(features=FEATURES["2.4.3"]), "2.4.3")


def test_vips_of_one_service_share_one_track_script() -> None:
    """Its start costs 35 ms of processor each second; and a VIP with another service, or with none, follows its own."""
    one, other = {"dns": "health.example."}, {"tcp": "127.0.0.1:443"}
    text = text_of(topology({"probe": one}, {"probe": other}, {"probe": one}, {}))
    found = {tuple(head): inner(block) for head, block in read(text)}
    assert [head[1] for head in found if head[0] == "vrrp_script"] == ["chk_v0", "chk_v1"]
    tracked = {head[1]: block.get("track_script") for head, block in found.items() if head[0] == "vrrp_instance"}
    assert tracked == {"VI_v0": [["chk_v0"]], "VI_v1": [["chk_v1"]], "VI_v2": [["chk_v0"]], "VI_v3": None}
