from __future__ import annotations

from edgekeeper.config.describe import parts, schema, unset, written
from edgekeeper.config.root import Root


def test_every_key_says_what_it_is_for_and_has_a_kind() -> None:
    keys = {key.path: key for part in parts() for key in part.keys}
    for key in keys.values():
        assert key.why, key.path
        assert key.kind != "value", key.path
    assert keys["dns.debounce"].kind == "duration"
    assert keys["dns.debounce"].default == "5s"
    assert keys["dns.listen"].kind == "list of address:port"
    assert keys["dns.listen"].required
    assert keys["ops.token_file"].kind == "path"
    assert keys["nodes.<name>.address"].kind == "address or host name"
    assert keys["dns.members.static[].port"].kind == "port"


def test_the_schema_takes_members_and_durations_as_they_are_written() -> None:
    document = schema()
    assert {"type": "string"}.items() <= document["$defs"]["MemberEntry"]["anyOf"][0].items()
    assert document["$defs"]["Dns"]["properties"]["debounce"]["default"] == "5s"
    assert document["additionalProperties"] is False


def test_unset_keys_are_told_with_the_value_in_force() -> None:
    root = Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, "debounce": "2s"}})
    told = {key.path: value for key, value in unset(root)}
    assert told["dns.retry"] == "normal"
    assert told["dns.health.interval"] == "1s"
    assert told["dns.acl"] == "[127.0.0.0/8, ::1/128]"
    assert "dns.debounce" not in told
    assert "dns.listen" not in told


def test_values_are_written_as_in_the_file() -> None:
    assert [written(value) for value in (None, True, 1.5, (), {}, {"a": 1}, "x", 3)] == ["not set", "true", "1.5", "[]", "{}", "{...}", "x", "3"]
    assert written(0.25, "duration") == "250ms"
