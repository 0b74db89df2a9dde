"""The fake of NetBird's management server is what we know of the real one: each fact of the table, and those that need a hand in its world."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fakes import netbird_facts as facts

from edgekeeper.lab import netbird_schema as schema
from edgekeeper.lab import netbird_services as services
from edgekeeper.lab.netbird_checks import canonical, seconds
from edgekeeper.lab.netbird_state import CLUSTER, DOMAIN, State
from edgekeeper.lab.netbird_world import AnswerError, stamp

ADMIN, READER = "nbp_main_admin", "nbp_main_reader"
SERVICES = "reverse-proxies/services"


class Called:
    """The state, asked as over HTTP; every answer of every test passes the schema."""

    def __init__(self) -> None:
        self.state = State()
        self.now = 1_800_000_000.0

    def __call__(self, method: str, path: str, body: Any = None, *, auth: str | None = f"Token {ADMIN}") -> tuple[int, Any]:
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = self.state.handle(method, f"/api/{path}", auth, sent, self.now)
        return answer.status, json.loads(answer.body) if answer.body else None

    def scene(self) -> facts.Scene:
        return facts.prepare(self, "facts", DOMAIN, CLUSTER)


@pytest.fixture
def ask() -> Iterator[Called]:
    called = Called()
    yield called
    assert called.state.broken == []


@pytest.mark.parametrize("fact", facts.REFUSED, ids=lambda fact: fact.what)
def test_a_service_is_refused(ask: Called, fact: facts.Refused) -> None:
    facts.refused(ask, ask.scene(), fact)
    assert ask(*("GET", SERVICES)) == (200, [])


def test_the_life_of_a_service_and_of_a_network(ask: Called) -> None:
    scene = ask.scene()
    facts.life_of_a_service(ask, scene)
    facts.life_of_a_network(ask, "life", ask("GET", "groups?name=routers")[1][0]["id"])


def test_what_is_no_json_object_is_refused(ask: Called) -> None:
    for text in (b"", b"{", b"[]", b"null"):
        assert ask("POST", SERVICES, text) == (400, {"message": "couldn't parse json request", "code": 400})


def test_who_may_do_what(ask: Called) -> None:
    body = facts.body(ask.scene(), {})
    assert ask("GET", SERVICES, auth=None) == (401, {"message": "no valid authentication provided", "code": 401})
    assert ask("GET", SERVICES, auth="Basic eDp5")[0] == 401
    assert ask("GET", SERVICES, auth="Token nbp_nobody") == (401, {"message": "token invalid", "code": 401})
    assert ask("GET", SERVICES, auth=f"Bearer {READER}")[0] == 200
    assert ask("POST", SERVICES, body, auth=f"Token {READER}") == (403, {"message": "permission denied", "code": 403})
    ask.state.add_user("nbp_n", "network_admin")
    assert ask("POST", SERVICES, body, auth="Token nbp_n")[0] == 403
    assert ask("POST", "networks", {"name": "n"}, auth="Token nbp_n")[0] == 200


def test_the_rate_limit_lets_six_a_minute_through_after_its_burst(ask: Called) -> None:
    ask.state.limit(on=True)
    assert [ask("GET", SERVICES)[0] for _ in range(501)] == [200] * 500 + [429]
    ask.now += 60
    assert [ask("GET", SERVICES)[0] for _ in range(7)] == [200] * 6 + [429]
    assert ask("GET", SERVICES, auth=f"Token {READER}")[0] == 200, "each token has its own"
    assert ask.state.counters.throttled == 2


def test_a_domain_is_taken_over_all_accounts(ask: Called) -> None:
    ask.state.add_account("other")
    assert ask("POST", SERVICES, facts.body(ask.scene(), {}))[0] == 200
    scene = facts.prepare(lambda *words: ask(*words, auth="Token nbp_other_admin"), "facts", CLUSTER, CLUSTER)
    wanted = facts.body(scene, {"domain": f"facts.{DOMAIN}"})
    ask.state.world.accounts["other"].domains["d"] = {**next(iter(ask.state.main.domains.values())), "id": "d"}
    assert ask("POST", SERVICES, wanted, auth="Token nbp_other_admin") == (409, {"message": "domain already taken", "code": 409})


def test_without_a_proxy_nothing_is_made_but_what_is_there_can_be_changed(ask: Called) -> None:
    scene = ask.scene()
    service = facts.made(ask("POST", SERVICES, facts.body(scene, {})))
    assert service["meta"]["status"] == "pending"
    assert ask("GET", f"{SERVICES}/{service['id']}")[1]["meta"]["status"] == "active"
    ask.state.world.clusters[CLUSTER].proxies = 0
    assert ask("GET", "reverse-proxies/clusters")[1][0]["online"] is False
    assert [domain["type"] for domain in ask("GET", "reverse-proxies/domains")[1]] == ["custom"]
    status, said = ask("POST", SERVICES, facts.body(scene, {"domain": f"b.{DOMAIN}"}))
    assert (status, said["message"]) == (412, f"could not derive cluster from domain b.{DOMAIN}: no proxy clusters available")
    moved = facts.made(ask("PUT", f"{SERVICES}/{service['id']}", facts.body(scene, {"domain": "nobody.example"})))
    assert moved["proxy_cluster"] == CLUSTER, "a domain that leads to no cluster stays on its old one"
    ask.state.add_cluster("other.example")
    status, said = ask("POST", SERVICES, facts.body(scene, {"domain": f"b.{CLUSTER}"}))
    assert (status, said["message"].rpartition(": ")[2]) == (412, f"domain b.{CLUSTER} does not match any available proxy cluster"), "although it is known"


def test_clusters_have_their_demands(ask: Called) -> None:
    scene = ask.scene()
    ask.state.add_cluster("strict.example", custom_ports=False, require_subdomain=True)
    status, said = ask("POST", SERVICES, facts.body(scene, {"domain": "strict.example"}))
    assert (status, said["message"]) == (422, "domain strict.example requires a subdomain label")
    status, said = ask("POST", SERVICES, facts.body(scene, {"domain": "a.strict.example", "mode": "tcp"}))
    assert (status, said["message"]) == (422, "custom ports not supported on cluster strict.example")
    assert ask("POST", SERVICES, facts.body(scene, {"domain": "a.strict.example"}))[0] == 200, "but for tls they are not asked for"
    assert ask("POST", SERVICES, facts.body(scene, {"mode": "tcp", "domain": "t.proxy.example", "listen_port": None}))[1]["port_auto_assigned"]


def test_a_terminated_service_stays_as_it_is(ask: Called) -> None:
    scene = ask.scene()
    service = facts.made(ask("POST", SERVICES, facts.body(scene, {})))
    services.keep(ask.state.world, ask.state.main, {**ask.state.main.services[service["id"]], "terminated": True})
    status, said = ask("PUT", f"{SERVICES}/{service['id']}", facts.body(scene, {}))
    assert (status, said["message"]) == (403, "service is terminated and cannot be updated")
    assert ask("GET", f"{SERVICES}/{service['id']}")[1]["enabled"] is False


def test_an_empty_secret_is_the_one_of_before(ask: Called) -> None:
    scene = ask.scene()
    header = {"enabled": True, "header": "X-Key", "value": "v"}
    auth = {"pin_auth": {"enabled": True, "pin": "1234"}, "header_auths": [header]}
    service = facts.made(ask("POST", SERVICES, facts.body(scene, {**facts.HTTP, "auth": auth})))
    assert service["auth"]["pin_auth"] == {"enabled": True, "pin": ""}
    assert facts.made(ask("PUT", f"{SERVICES}/{service['id']}", {**service, "name": "y"}))
    assert ask.state.world.secrets[service["id"]] == {"pin_auth": "1234", "header x-key": "v"}
    assert facts.made(ask("PUT", f"{SERVICES}/{service['id']}", facts.body(scene, facts.HTTP)))["auth"] == {}
    assert service["id"] not in ask.state.world.secrets


def test_a_put_cuts_and_is_counted(ask: Called) -> None:
    scene = ask.scene()
    sent: list[list[str]] = []
    ask.state.world.pushed.append(lambda _, services: sent.append(list(services)))
    ids = [facts.made(ask("POST", SERVICES, facts.body(scene, {"domain": f"{n}.{DOMAIN}"})))["id"] for n in range(3)]
    before = ask.state.reset()
    assert (before.writes, before.cut) == (6, 0)
    assert ask("PUT", f"{SERVICES}/{ids[0]}", facts.body(scene, {"domain": f"0.{DOMAIN}"}))[0] == 200
    resource = {"name": "facts-subnet", "address": "198.51.100.0/24", "enabled": True, "groups": []}
    assert ask("PUT", f"networks/{scene.network}/resources/{scene.subnet}", resource)[0] == 200
    assert (ask.state.counters.cut, ask.state.counters.writes) == (1 + 3, 2)
    assert sent == [[ids[0]], [ids[1]], [ids[2]], [ids[0]], ids]
    ask.state.edit(f"0.{DOMAIN}", enabled=False)
    assert (ask.state.counters.cut, ask.state.counters.writes) == (5, 2), "by hand it cuts, but is no write of ours"
    assert [route.host for route in ask.state.routes()] == [f"1.{DOMAIN}", f"2.{DOMAIN}"]


def test_a_disabled_service_is_routed_again_by_the_next_write(ask: Called) -> None:
    scene = ask.scene()
    service = facts.made(ask("POST", SERVICES, facts.body(scene, {"enabled": False})))
    one, off = f"{SERVICES}/{service['id']}", facts.body(scene, {"enabled": False})

    sent: list[list[str]] = []
    ask.state.world.pushed.append(lambda _, services: sent.append(list(services)))

    def routed() -> bool:
        return bool(ask.state.routes())

    assert routed(), "made disabled, and sent all the same"
    facts.made(ask("PUT", one, facts.body(scene, {})))
    facts.made(ask("PUT", one, off))
    assert not routed()
    facts.made(ask("PUT", one, off))
    assert routed(), "an update, and the proxies do not know what disabled is"
    ask.state.resync()
    assert not routed()
    resource = {"name": "facts-subnet", "address": "198.51.100.0/24", "enabled": True, "groups": []}
    facts.made(ask("PUT", f"networks/{scene.network}/resources/{scene.subnet}", resource))
    assert routed(), "all services are sent again, whatever they are"
    facts.made(ask("DELETE", one))
    assert not routed()
    assert sent == [[service["id"]]] * 6


def test_a_network_goes_with_all_that_is_in_it_and_its_services_lead_nowhere(ask: Called) -> None:
    scene = ask.scene()
    service = facts.made(ask("POST", SERVICES, facts.body(scene, {})))
    assert ask("DELETE", f"networks/{scene.network}") == (200, {})
    assert ask("GET", f"{SERVICES}/{service['id']}")[1]["targets"][0]["target_id"] == scene.subnet
    assert [route.dead for route in ask.state.routes()] == [True]
    assert ask("PUT", f"{SERVICES}/{service['id']}", facts.body(scene, {"name": "x"}))[0] == 422


def test_a_host_that_is_gone_is_unknown_and_one_that_moved_is_where_it_is(ask: Called) -> None:
    scene = ask.scene()
    service = facts.made(ask("POST", SERVICES, facts.body(scene, {"target": {"target_type": "host", "target_id": scene.host}})))
    resource = {"name": "facts-host", "address": "198.51.100.8", "enabled": True, "groups": []}
    facts.made(ask("PUT", f"networks/{scene.network}/resources/{scene.host}", resource))
    assert ask("GET", SERVICES)[1][0]["targets"][0]["host"] == "198.51.100.8"
    facts.made(ask("DELETE", f"networks/{scene.network}"))
    assert ask("GET", f"{SERVICES}/{service['id']}")[1]["targets"][0]["host"] == "unknown"


@pytest.mark.parametrize(
    ("given", "answered"), [*facts.DURATIONS.items(), ("-90s", "-1m30s"), ("1us", "1µs"), ("7ns", "7ns"), ("1h1ms", "1h0m0.001s"), ("0", "0s")]
)
def test_a_duration_is_written_as_go_writes_it(given: str, answered: str) -> None:
    assert canonical(given) == answered
    assert canonical(answered) == answered
    assert seconds(given) == seconds(answered)


def test_a_tcp_service_keeps_its_port_and_has_it_alone(ask: Called) -> None:
    scene = ask.scene()
    first = facts.made(ask("POST", SERVICES, facts.body(scene, {"mode": "tcp", "listen_port": None})))
    assert first["port_auto_assigned"]
    kept = facts.made(ask("PUT", f"{SERVICES}/{first['id']}", facts.body(scene, {"mode": "tcp", "listen_port": None})))
    assert (kept["listen_port"], kept["port_auto_assigned"]) == (first["listen_port"], True)
    status, said = ask("POST", SERVICES, facts.body(scene, {"mode": "tcp", "listen_port": first["listen_port"], "domain": f"b.{DOMAIN}"}))
    assert (status, said["message"]) == (409, f'tcp port {first["listen_port"]} is already in use by service "a fact" on cluster {CLUSTER}')


def test_a_domain_is_not_taken_by_a_put_either(ask: Called) -> None:
    scene = ask.scene()
    facts.made(ask("POST", SERVICES, facts.body(scene, {"domain": f"a.{DOMAIN}"})))
    second = facts.made(ask("POST", SERVICES, facts.body(scene, {"domain": f"b.{DOMAIN}"})))
    assert ask("PUT", f"{SERVICES}/{second['id']}", facts.body(scene, {"domain": f"a.{DOMAIN}"}))[0] == 409


def test_domains_groups_policies_and_the_version(ask: Called) -> None:
    assert ask("GET", "reverse-proxies/domains")[1][0]["id"] == ""
    assert ask("POST", "reverse-proxies/domains", {"domain": "d.example", "target_cluster": "no.example"})[0] == 500
    domain = facts.made(ask("POST", "reverse-proxies/domains", {"domain": "d.example", "target_cluster": CLUSTER}))
    assert domain["validated"] is False
    assert ask("GET", f"reverse-proxies/domains/{domain['id']}/validate") == (202, None)
    scene = ask.scene()
    assert ask("POST", SERVICES, facts.body(scene, {"domain": "x.d.example"}))[0] == 200, "not validated, and not asked"
    assert ask("DELETE", f"reverse-proxies/domains/{domain['id']}") == (204, None)
    assert ask("GET", "groups?name=no%20such")[0] == 404
    (group,) = ask("GET", "groups?name=All")[1]
    rule = {"name": "r", "enabled": True, "action": "accept", "bidirectional": False, "protocol": "tcp", "sources": [group["id"], "gone"], "ports": ["443"]}
    wanted = {"name": "p", "enabled": True, "rules": [{**rule, "destinationResource": {"id": scene.subnet, "type": "subnet"}}]}
    assert ask("GET", "policies") == (200, [])
    for _ in range(2):
        assert [g["name"] for g in facts.made(ask("POST", "policies", wanted))["rules"][0]["sources"]] == ["All"]
    policies = ask("GET", "policies")[1]
    assert ask("GET", f"networks/{scene.network}")[1]["policies"] == [policy["id"] for policy in policies]
    ask.state.main.policies[policies[0]["id"]]["rules"].clear()
    assert ask("GET", "policies")[0] == 500
    assert len(ask("GET", "peers")[1]) == 2
    assert ask("GET", "instance/version")[1]["management_current_version"] == "0.77.1"
    assert ask("GET", "no/such/thing")[0] == 404
    assert ask("PATCH", SERVICES, {})[0] in (404, 405)


RULE = {"name": "r", "enabled": True, "action": "accept", "bidirectional": False, "protocol": "tcp", "sources": ["g"], "destinations": ["g"]}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("policies", {"name": "", "rules": [RULE]}, 422, "policy name shouldn't be empty"),
        ("policies", {"name": "p", "rules": []}, 422, "policy rules shouldn't be empty"),
        ("policies", {"name": "p", "rules": [7]}, 400, "couldn't parse json request"),
        ("policies", {"name": "p", "rules": [{**RULE, "action": "x"}]}, 422, "unknown action type"),
        ("policies", {"name": "p", "rules": [{**RULE, "protocol": "x"}]}, 422, "unknown protocol type: x"),
        ("policies", {"name": "p", "rules": [{**RULE, "sourceResource": {}}]}, 422, "specify either sources or  source resources, not both"),
        ("policies", {"name": "p", "rules": [{**RULE, "sources": []}]}, 422, None),
        ("groups", {"name": ""}, 422, "group name shouldn't be empty"),
        ("groups", {"name": "All"}, 409, None),
        ("reverse-proxies/domains", {"domain": "-", "target_cluster": CLUSTER}, 422, None),
        ("reverse-proxies/domains", {"domain": DOMAIN, "target_cluster": CLUSTER}, 409, None),
        ("peers", {}, 405, None),
        (f"{SERVICES}/x/y", {}, 405, None),
        ("reverse-proxies/domains/x/y", {}, 405, None),
        ("networks/x/resources", {}, 404, "network x not found"),
    ],
)
def test_what_else_is_refused(ask: Called, path: str, body: dict[str, Any], status: int, message: str | None) -> None:
    found, said = ask("POST", path, body)
    assert (found, said["code"]) == (status, status)
    assert message in (None, said["message"])
    with pytest.raises(AnswerError):
        ask.state.edit("nobody.example", name="x")


def test_a_newer_server_has_fields_that_only_a_whole_put_keeps(ask: Called) -> None:
    scene = ask.scene()
    ask.state.world.newer = True
    body = facts.body(scene, {"future": {"a": 1}, "access_restrictions": {"allowed_cidrs": ["192.0.2.0/24"], "appsec_mode": "on"}})
    service = facts.made(ask("POST", SERVICES, body))
    kept = facts.made(ask("PUT", f"{SERVICES}/{service['id']}", {**service, "name": "x"}))
    assert (kept["future"], kept["access_restrictions"]["appsec_mode"]) == ({"a": 1}, "on")
    assert "future" not in facts.made(ask("PUT", f"{SERVICES}/{service['id']}", facts.body(scene, {})))


def test_by_hand_is_refused_as_by_api(ask: Called) -> None:
    with pytest.raises(AnswerError) as err:
        ask.state.hand("POST", SERVICES, {})
    assert (err.value.status, err.value.message) == (422, "service name is required")
    assert ask.state.find("nobody.example") is None
    assert ask.state.counters.calls == {}


def test_ten_thousand_services_are_listed_without_being_written_anew(ask: Called) -> None:
    scene = ask.scene()
    ask("POST", SERVICES, facts.body(scene, {}))
    first = ask.state.handle("GET", f"/api/{SERVICES}", f"Token {ADMIN}", b"", 0).body
    assert ask.state.handle("GET", f"/api/{SERVICES}", f"Token {ADMIN}", b"", 0).body is first
    ask.state.edit(scene.domain, name="other")
    assert json.loads(ask.state.handle("GET", f"/api/{SERVICES}", f"Token {ADMIN}", b"", 0).body)[0]["name"] == "other"


def test_a_mistake_of_the_fake_is_told() -> None:
    state = State()
    state.main.groups["g"] = {}
    assert state.handle("GET", "/api/groups", f"Token {ADMIN}", b"", 0).status == 500
    assert "KeyError" in state.broken[0]


@pytest.mark.parametrize("now", [0, 951_782_400, 951_868_799, 1_709_164_800, 1_798_761_599, 4_107_542_400])
def test_a_time_is_written_as_the_calendar_has_it(now: int) -> None:
    assert stamp(now) == datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z")


def test_the_schema_says_what_is_wrong_and_where() -> None:
    good = {"id": "i", "address": "a", "type": "shared", "online": True, "connected_proxies": 1, "unknown": []}
    assert schema.problems(schema.CLUSTER, good) == []
    assert schema.problems(schema.LISTS["clusters"], [good, {**good, "online": 1}]) == ["[1].online is int, not bool"]
    assert schema.problems(schema.CLUSTER, {**good, "type": "x", "connected_proxies": True}) == [
        "type is 'x', not one of account, shared",
        "connected_proxies is bool, not int",
    ]
    assert schema.problems(schema.LISTS["clusters"], None) == ["it is null, not a list"]
    assert schema.problems(schema.LISTS["resources"], None) == []
    assert schema.problems(schema.CLUSTER, {}) == [f"it has no {key}" for key in schema.CLUSTER.must]
    assert schema.problems(schema.STAMP, "yesterday") == ["it is not a time"]
