"""Which Lua functions stand beside which topology."""

from __future__ import annotations

import pytest

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.functions import lines
from edgekeeper.engines.dnsdist.topology import build
from edgekeeper.model.backend import Member

NEW = Features((2, 1, 3), yaml=True, protocols=("do53",), ebpf=True)
OLD = Features((1, 9, 16), yaml=False, protocols=("do53",), ebpf=True)
TEXT = {"health": {"name": "health.example.", "type": "TXT"}}


def made(features=NEW, *, enforce=True, **said):
    dns = Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, **said}}).dns
    return "\n".join(lines(build(dns, (Member("ns-a", "127.0.0.1", 53),), (), features, enforce_identity=enforce)))


def test_only_what_is_used_is_there():
    bare = made(retry="off")
    assert "ek_put" in bare
    assert not any(name in bare for name in ("ek_retry", "ek_identity", "maintenance"))
    assert "ek_retry" in made()
    assert "ek_retry" not in made(OLD)
    assert "ek_identity" not in made(OLD, identity="require", **TEXT)
    assert "ek_identity" in made(identity="require", **TEXT)


@pytest.mark.parametrize("enforce", [True, False])
def test_the_switch_is_where_a_live_change_left_it(enforce):
    assert f"ek_enforce_identity = {str(enforce).lower()}" in made(enforce=enforce, identity="require", **TEXT).splitlines()


@pytest.mark.parametrize(
    ("said", "work"),
    [
        ({}, ["  ek_retry_refill()"]),
        ({"dynblocks": {"query_rate": 1}}, ["  ek_retry_refill()", "  if ek_guard ~= nil then ek_guard:apply() end"]),
        ({"dynblocks": {"query_rate": 1}, "retry": "off"}, ["  if ek_guard ~= nil then ek_guard:apply() end"]),
    ],
)
def test_the_work_of_every_second(said, work):
    found = made(**said).splitlines()
    begin = found.index("function maintenance()")
    assert found[begin + 1 :] == [*work, "end"]
