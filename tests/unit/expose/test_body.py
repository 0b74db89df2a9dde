import copy

from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.expose import body
from edgekeeper.expose.kinds import Anchor, Options, Place, Service

PLACE, ANCHOR = Place("10.96.0.10", 443), Anchor("res-1", "subnet")


NOTHING = Options()


def laid(raw, options=NOTHING, place=PLACE, anchor=ANCHOR, **more):
    return body.laid_over(raw, "git.example", "mark", options, place, anchor, listen_port=8443, proxy_protocol=True, **more)


def there(**more):
    """A service as the mesh gives it back, with things that this version does not know."""
    made = body.fresh("git.example", "mark", Options(), PLACE, ANCHOR, listen_port=8443, proxy_protocol=True)
    return {**made, "id": "s1", "meta": {"status": "active"}, "port_auto_assigned": False, "appsec_mode": "observe", **more}


def test_a_service_that_is_right_needs_nothing_written():
    raw = there()
    assert body.differences(raw, laid(raw)) == []


def test_what_a_person_has_set_survives_a_change_of_the_target():
    limits = {"allowed_cidrs": ["192.0.2.0/24"], "allowed_countries": ["DE"], "crowdsec_mode": "enforce", "allow_match": "any"}
    raw = there(access_restrictions=limits)
    raw["targets"][0]["options"]["direct_upstream"] = True
    made = laid(raw, place=Place("10.96.0.99", 443))
    assert made["access_restrictions"] == limits
    assert made["appsec_mode"] == "observe"
    assert made["targets"][0]["options"]["direct_upstream"] is True
    assert made["targets"][0]["host"] == "10.96.0.99"
    assert body.differences(raw, made) == ["target host: 10.96.0.10 to 10.96.0.99"]
    assert "id" not in made
    assert "meta" not in made


def test_one_restriction_of_an_object_leaves_the_others():
    raw = there(access_restrictions={"allowed_cidrs": ["192.0.2.0/24"], "blocked_countries": ["XX"]})
    made = laid(raw, Options(allowed_cidrs=("198.51.100.0/24",)))
    assert made["access_restrictions"] == {"allowed_cidrs": ["198.51.100.0/24"], "blocked_countries": ["XX"]}


def test_a_restriction_is_lifted_only_when_an_object_says_so():
    limits = {"allowed_cidrs": ["192.0.2.0/24"], "blocked_countries": ["XX"]}
    assert laid(there(access_restrictions=limits))["access_restrictions"] == limits
    made = laid(there(access_restrictions=limits), Options(allowed_cidrs=()))
    assert made["access_restrictions"] == {"allowed_cidrs": [], "blocked_countries": ["XX"]}
    assert body.differences(there(access_restrictions=limits), made) != []


def test_a_service_that_a_person_has_switched_off_stays_off():
    raw = there(enabled=False)
    made = laid(raw)
    assert made["enabled"] is False
    assert body.differences(raw, made) == []


def test_values_are_compared_by_what_they_mean():
    raw = there(access_restrictions={"allowed_cidrs": ["2001:DB8::/32", "192.0.2.0/24"]}, domain="GIT.example.")
    raw["targets"][0]["options"] |= {"request_timeout": "1m30s", "proxy_protocol": True}
    raw["targets"][0]["host"] = "10.96.0.10"
    made = laid(raw, Options(allowed_cidrs=("192.0.2.0/24", "2001:db8::/32"), request_timeout="90s"))
    assert body.differences(raw, made) == []


def test_a_zero_value_and_an_absent_one_are_the_same():
    raw = there()
    del raw["auth"]
    made = {**laid(raw), "pass_host_header": False, "auth": {}, "access_groups": None}
    assert body.differences({**raw, "pass_host_header": None}, made) == []


def test_a_host_resource_takes_no_host():
    raw = there()
    made = laid(raw, anchor=Anchor("res-2", "host"))
    assert "host" not in made["targets"][0]
    assert body.differences(raw, made) == ["target target_id: res-1 to res-2", "target target_type: subnet to host"]


def test_the_host_that_the_server_fills_in_for_a_host_resource_is_no_difference():
    raw = there()
    made = laid(raw, anchor=Anchor("res-2", "host"))
    answered = {**made, "targets": [{**made["targets"][0], "host": "10.96.0.10"}]}
    assert body.differences(answered, laid(answered, anchor=Anchor("res-2", "host"))) == []


def test_of_several_targets_one_is_left_and_that_is_a_difference():
    raw = there()
    raw["targets"] = [*raw["targets"], {"target_id": "res-9", "target_type": "host", "port": 443}]
    made = laid(raw)
    assert [target["target_id"] for target in made["targets"]] == ["res-1"]
    assert body.differences(raw, made) == ["targets: several to one"]


def test_switching_off_changes_the_name_and_nothing_else():
    raw = there(access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]})
    made = body.disabled(Service("s1", "git.example", "mark", raw), "mark:leaving")
    assert {key for key in made if made[key] != raw.get(key)} == {"name", "enabled"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(st.sampled_from(["x", "y", "options", "unknown"]), VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_change_on_the_same_state_is_the_change_itself(old, new):
    assert body.rebased(old, new, old) == {key: value for key, value in new.items() if key not in body.ONLY_ANSWERED}


def test_what_somebody_changed_between_the_look_and_the_write_survives():
    old = there()
    new = laid(old, place=Place("10.96.0.99", 443))
    fresh = copy.deepcopy(old)
    fresh["access_restrictions"] = {"allowed_cidrs": ["192.0.2.0/24"]}
    fresh["targets"][0]["options"]["session_idle_timeout"] = "1h"
    fresh["pass_host_header"] = True
    fresh["targets"][0]["port"] = 8443
    made = body.rebased(old, new, fresh)
    assert made["access_restrictions"] == {"allowed_cidrs": ["192.0.2.0/24"]}
    assert made["targets"][0]["options"]["session_idle_timeout"] == "1h"
    assert made["targets"][0]["host"] == "10.96.0.99"
    assert (made["pass_host_header"], made["targets"][0]["port"]) == (True, 8443)


def test_in_tls_keeps_restrictions_and_drops_what_passthrough_has_not():
    raw = there(mode="http", auth={"pin_auth": {"enabled": True}}, access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]}, private=False)
    raw["targets"][0] |= {"path": "/x", "options": {"skip_tls_verify": True, "request_timeout": "5s"}}
    made = body.in_tls(laid(raw))
    assert made["mode"] == "tls"
    assert made["auth"] == {}
    assert made["access_restrictions"] == {"allowed_cidrs": ["192.0.2.0/24"]}
    assert "path" not in made["targets"][0]
    assert made["targets"][0]["options"] == {"request_timeout": "5s", "proxy_protocol": True}
