from __future__ import annotations

from edgekeeper.config.mistakes import fields_at, nearest
from edgekeeper.config.root import Root


def test_the_nearest_name_is_offered_else_all() -> None:
    assert nearest("helth", ["health", "listen"]) == "unknown key; did you mean health?"
    assert nearest("zzz", ["health", "listen"]) == "unknown key; known here: health, listen"


def test_the_fields_of_a_section_are_found_through_unions_lists_and_mappings() -> None:
    assert "secret_file" in fields_at(Root, ("dns", "proxy_protocol"))
    assert "host" in fields_at(Root, ("dns", "members", "static", 0))
    assert "host" in fields_at(Root, ("dns", "forward", "lan.", 0))
    assert "ops" in fields_at(Root, ("nodes", "edge-a"))
    assert fields_at(Root, ("dns", "listen")) == {}
    assert fields_at(Root, ("nowhere", 1)) == {}
