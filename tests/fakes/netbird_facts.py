"""What NetBird's management API does, as a table: the fake is held to it, and so is a real server by whoever has one.

Read in the server's source (v0.77.1). ``{subnet}``, ``{domain}`` and so on in a message stand for the scene's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Ask = Callable[..., tuple[int, Any]]
"""``ask(method, path without /api/, body)``: status, and the body parsed (None when there is none)."""

HTTP: dict[str, Any] = {"mode": "http", "listen_port": None, "target": {"protocol": "http", "options": None}}
UDP = {"mode": "udp", "target": {"protocol": "udp"}}
MANY_CIDRS = [f"192.0.2.{n}/32" for n in range(201)]
MANY_COUNTRIES = [chr(65 + n // 26) + chr(65 + n % 26) for n in range(51)]


@dataclass(frozen=True)
class Scene:
    """A place to try things: ids of a network, of a subnet and a host resource in it, and a domain that nobody has."""

    network: str
    subnet: str
    host: str
    domain: str
    cluster: str

    def words(self, message: str) -> str:
        return message.format(subnet=self.subnet, host=self.host, domain=self.domain, cluster=self.cluster)


def prepare(ask: Ask, name: str, parent: str, cluster: str) -> Scene:
    """Make the network and its resources; ``name`` is in the names of all that is made."""
    network = made(ask("POST", "networks", {"name": name}))["id"]
    path = f"networks/{network}/resources"
    ids = [
        made(ask("POST", path, {"name": f"{name}-{kind}", "address": address, "enabled": True, "groups": []}))["id"]
        for kind, address in (("subnet", "198.51.100.0/24"), ("host", "198.51.100.9"))
    ]
    return Scene(network, *ids, f"{name}.{parent}", cluster)


def made(answer: tuple[int, Any]) -> Any:
    """What was answered, which must be a success."""
    assert answer[0] == 200, answer
    return answer[1]


def body(scene: Scene, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A service as edgekeeper makes one, changed: None leaves a field out, ``target`` changes its only target."""
    target = {
        "target_id": scene.subnet,
        "target_type": "subnet",
        "host": "198.51.100.10",
        "protocol": "tcp",
        "port": 443,
        "enabled": True,
        "options": {"proxy_protocol": True},
    }
    target = without({**target, **changes.get("target", {})})
    whole = {"name": "a fact", "domain": scene.domain, "mode": "tls", "listen_port": 443, "enabled": True, "targets": [target]}
    return without({**whole, **{key: value for key, value in changes.items() if key != "target"}})


def without(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields that are None are left out."""
    return {key: value for key, value in fields.items() if value is not None}


class Refused(NamedTuple):
    """A service that is not made: how it differs from a good one, and the answer ("" when only the status is known)."""

    what: str
    changes: Mapping[str, Any]
    status: int
    message: str


REFUSED = [
    Refused("no name", {"name": None}, 422, "service name is required"),
    Refused("a long name", {"name": "n" * 256}, 422, "service name exceeds maximum length of 255 characters"),
    Refused("no targets", {"targets": []}, 422, "at least one target is required"),
    Refused("an unknown mode", {"mode": "foo"}, 422, 'unsupported mode "foo"'),
    Refused("tls without a port", {"listen_port": None}, 422, "listen_port is required for tls services"),
    Refused("tls on port 0", {"listen_port": 0}, 422, "listen_port is required for tls services"),
    Refused("tls with two targets", {"targets": [{}, {}]}, 422, "tls services must have exactly one target"),
    Refused("tls with a login", {"auth": {"password_auth": {"enabled": True, "password": "x"}}}, 422, "auth is not supported for tls services"),
    Refused("tls without a domain", {"domain": ""}, 422, "domain is required for tls services (used for sni matching)"),
    Refused("no target id", {"target": {"target_id": ""}}, 422, "target_id is required for l4 services"),
    Refused("no target port", {"target": {"port": 0}}, 422, "target port is required for l4 services"),
    Refused("a subnet without a host", {"target": {"host": None}}, 422, "target host is required for subnet targets"),
    Refused("tls with a path", {"target": {"path": "/x"}}, 422, "path is not supported for l4 services"),
    *(
        Refused(f"tls with {key}", {"target": {"options": {key: value}}}, 422, f"{key} is not supported for l4 services")
        for key, value in (("skip_tls_verify", True), ("path_rewrite", "preserve"), ("custom_headers", {"X-A": "b"}))
    ),
    Refused("udp with proxy protocol", UDP, 422, "proxy_protocol is not supported for udp services"),
    Refused("http with proxy protocol", {**HTTP, "target": {}}, 422, "target 0: proxy_protocol is not supported for http services"),
    Refused("http on a port", {**HTTP, "listen_port": 443}, 422, "listen_port is not supported for http services"),
    Refused("private and tls", {"private": True, "access_groups": ["g"]}, 422, 'private services only support http mode, got "tls"'),
    Refused("private for nobody", {**HTTP, "private": True}, 422, "private services require at least one access group"),
    Refused(
        "host bits",
        {"access_restrictions": {"allowed_cidrs": ["10.0.0.1/8"]}},
        422,
        'allowed_cidrs[0]: "10.0.0.1/8" has host bits set, use 10.0.0.0/8 instead',
    ),
    Refused("201 networks", {"access_restrictions": {"allowed_cidrs": MANY_CIDRS}}, 422, ""),
    Refused("51 countries", {"access_restrictions": {"allowed_countries": MANY_COUNTRIES}}, 422, ""),
    Refused("an unknown target", {"target": {"target_id": "x"}}, 422, 'resource target "x" not found in account'),
    Refused(
        "another type",
        {"target": {"target_id": "{host}"}},
        422,
        'target "{host}" has target_type "subnet" but resource is of type "host"',
    ),
    Refused(
        "a domain of nobody",
        {"domain": "nobody.example"},
        412,
        "could not derive cluster from domain nobody.example: domain nobody.example does not match any available proxy cluster",
    ),
    Refused("no network at all", {"access_restrictions": {"blocked_cidrs": ["192.0.2.1"]}}, 422, ""),
    Refused(
        "a long country", {"access_restrictions": {"allowed_countries": ["abc"]}}, 422, 'allowed_countries[0]: "abc" must be a 2-letter iso 3166-1 alpha-2 code'
    ),
    Refused("an unknown crowdsec mode", {"access_restrictions": {"crowdsec_mode": "x"}}, 422, 'invalid crowdsec_mode "x"'),
    Refused("no duration", {"target": {"options": {"request_timeout": "soon"}}}, 422, ""),
    Refused("a duration without a unit", {"target": {"options": {"session_idle_timeout": "30"}}}, 422, ""),
    Refused("a negative duration", {"target": {"options": {"request_timeout": "-1s"}}}, 422, "request_timeout must be positive for l4 services"),
    Refused("an unknown target type", {"target": {"target_type": "x"}}, 422, 'invalid target_type "x" for l4 service'),
    Refused("a peer of nobody", {"target": {"target_type": "peer", "target_id": "x"}}, 422, 'peer target "x" not found in account'),
    Refused("http without a domain", {**HTTP, "domain": ""}, 422, "service domain is required"),
    Refused("http to a subnet's nobody", {**HTTP, "target": {**HTTP["target"], "host": ""}}, 422, 'target 0 has empty host but target_type is "subnet"'),
    Refused("http to no id", {**HTTP, "target": {**HTTP["target"], "target_id": ""}}, 422, "target 0 has empty target_id"),
    Refused("http to an unknown type", {**HTTP, "target": {**HTTP["target"], "target_type": "x"}}, 422, 'target 0 has invalid target_type "x"'),
    Refused(
        "a header without a value",
        {**HTTP, "auth": {"header_auths": [{"enabled": True, "header": "X-A", "value": ""}]}},
        422,
        "header_auths[0]: value is required",
    ),
    Refused("tcp with two targets", {"mode": "tcp", "targets": [{}, {}]}, 422, "tcp/udp services must have exactly one target"),
    Refused("a port that is 0 in 16 bits", {"listen_port": 65_536}, 422, "listen_port is required for tls services"),
    Refused("a target that is none", {"targets": [7]}, 400, "couldn't parse json request"),
    Refused("groups that are none", {"access_groups": [7]}, 400, "couldn't parse json request"),
    Refused("a field of another type", {"name": 7}, 400, "couldn't parse json request"),
]
"""Requests for a service that change nothing."""


def refused(ask: Ask, scene: Scene, fact: Refused) -> None:
    """Ask for it, and see it refused."""
    wanted = body(scene, fact.changes)
    for target in wanted["targets"]:
        if isinstance(target, dict) and target.get("target_id") == "{host}":
            target["target_id"] = scene.host
    status, said = ask("POST", "reverse-proxies/services", wanted)
    assert status == fact.status, (fact.what, status, said)
    assert said["code"] == fact.status
    if fact.message:
        assert said["message"] == scene.words(fact.message)


RESET = {
    "pass_host_header": True,
    "rewrite_redirects": True,
    "access_restrictions": {"allowed_cidrs": ["192.0.2.0/24"], "blocked_countries": ["aq"], "crowdsec_mode": "off"},
}
"""What a PUT that does not say it again takes away."""


def life_of_a_service(ask: Ask, scene: Scene) -> None:
    """One service from its POST to its DELETE, with every trap on its way that needs nothing but the API."""
    path = "reverse-proxies/services"
    service = made(ask("POST", path, body(scene, RESET)))
    try:
        assert service["access_restrictions"] == {"allowed_cidrs": ["192.0.2.0/24"], "blocked_countries": ["AQ"], "crowdsec_mode": "off"}
        assert service["targets"][0]["enabled"] is True
        assert service["proxy_cluster"] == scene.cluster
        for changes in ({}, HTTP):
            status, said = ask("POST", path, body(scene, changes))
            assert status == 409
            assert "already" in said["message"]
        one = f"{path}/{service['id']}"
        status, said = ask("PUT", one, body(scene, HTTP))
        assert (status, said["message"]) == (422, 'cannot change mode from "tls" to "http"')
        status, said = ask("DELETE", f"networks/{scene.network}/resources/{scene.subnet}")
        assert status == 412
        assert said["message"].startswith("resource ")
        assert " is in use by proxy " in said["message"]
        status, said = ask("PUT", one, body(scene, {"listen_port": None}))
        assert (status, said["message"]) == (422, "listen_port is required for tls services"), "looked at before the old one would be kept"
        changed = made(ask("PUT", one, body(scene, {"target": {"options": None}, "name": "forgetful"})))
        assert "access_restrictions" not in changed or not any(changed["access_restrictions"].values())
        assert not changed["pass_host_header"]
        assert not changed["rewrite_redirects"]
        assert changed["targets"][0]["options"] == {}
        for given, answered in DURATIONS.items():
            timed = made(ask("PUT", one, body(scene, {"target": {"options": {"request_timeout": given, "session_idle_timeout": given}}})))
            assert timed["targets"][0]["options"] == {"request_timeout": answered, "session_idle_timeout": answered}, given
        led = made(ask("PUT", one, body(scene, {"target": {"target_type": "host", "target_id": scene.host, "host": "192.0.2.200"}})))
        assert led["targets"][0]["host"] == "198.51.100.9", "looked up, whatever was sent"
        changed = made(ask("PUT", one, body(scene, {"name": "forgetful"})))
        assert made(ask("GET", one)) == {**changed, "meta": made(ask("GET", one))["meta"]}
        trapped = made(ask("PUT", one, body(scene, {"listen_port": 65_979, "domain": f"*.{scene.domain}"})))
        assert trapped["listen_port"] == 443, "cast to 16 bits"
        assert trapped["domain"] == f"*.{scene.domain}", "taken, and never matched"
    finally:
        assert ask("DELETE", f"{path}/{service['id']}")[0] == 200
    assert ask("DELETE", f"{path}/{service['id']}")[0] == 404
    assert ask("PUT", f"{path}/{service['id']}", body(scene, {}))[0] == 404
    assert ask("PUT", f"{path}/{service['id']}", body(scene, {"name": None}))[0] == 422, "a request is looked at before the service is"


DURATIONS = {"30s": "30s", "90s": "1m30s", "5m": "5m0s", "1h": "1h0m0s", "1500ms": "1.5s", "250ms": "250ms", "61.5s": "1m1.5s", "3600001ms": "1h0m0.001s"}
"""A duration as it is given and as it is answered: as texts they differ for ever."""


def life_of_a_network(ask: Ask, name: str, group: str) -> None:
    """A network, its resources and routers, and what is said of each; ``group`` is the id of a group."""
    network = made(ask("POST", "networks", {"name": name, "description": "a fact"}))
    path = f"networks/{network['id']}"
    try:
        assert ask("GET", f"{path}/resources") == (200, None), "null, the only list that is"
        assert ask("GET", f"{path}/routers") == (200, [])
        twin = made(ask("POST", "networks", {"name": name}))
        assert ask("DELETE", f"networks/{twin['id']}")[0] == 200, "names are not unique"
        for index, (address, stored, kind) in enumerate(ADDRESSES):
            resource = made(ask("POST", f"{path}/resources", {"name": f"{name}-{index}", "address": address, "enabled": True, "groups": []}))
            assert (resource["address"], resource["type"]) == (stored, kind), address
            assert not resource["groups"]
        status, said = ask("POST", f"{path}/resources", {"name": f"{name}-0", "address": "192.0.2.0/24", "enabled": True, "groups": []})
        assert (status, said["message"]) == (422, f"failed to create network resource: resource with name {name}-0 already exists")
        status, said = ask("POST", f"{path}/resources", {"name": f"{name}-x", "address": "not an address", "enabled": True, "groups": []})
        assert (status, said["message"]) == (500, "internal server error")
        router = {"metric": 9999, "masquerade": True, "enabled": False}
        assert ask("POST", f"{path}/routers", router)[0] == 400
        other = made(ask("GET", f"{path}/resources"))[1]
        status, said = ask("PUT", f"{path}/resources/{other['id']}", {"name": f"{name}-0", "address": other["address"], "enabled": True, "groups": []})
        assert (status, said["message"]) == (422, "failed to update network resource: new resource name already exists")
        assert ask("POST", f"{path}/routers", {**router, "peer": "p", "peer_groups": [group]})[0] == 400
        assert made(ask("GET", path))["routers"] is None, "null here, and [] as a list of its own"
        routers = [made(ask("POST", f"{path}/routers", {**router, "peer_groups": [group]})) for _ in range(2)]
        assert all(each["enabled"] for each in routers), "whatever was asked; and twice the same"
        assert {each["peer"] for each in routers} == {""}
        assert len(made(ask("GET", f"{path}/routers"))) == 2
    finally:
        assert ask("DELETE", path) == (200, {})
    assert ask("GET", path)[0] == 404
    assert ask("GET", f"{path}/resources")[0] == 404


ADDRESSES = [
    ("198.51.100.1", "198.51.100.1/32", "host"),
    ("198.51.100.77/25", "198.51.100.77/25", "subnet"),
    ("2001:DB8:0::/48", "2001:db8::/48", "subnet"),
    ("2001:db8::/32", "2001:db8::/32", "host"),
    ("2001:db8::1", "2001:db8::1/128", "host"),
    ("git.home.example", "git.home.example", "domain"),
]
"""A resource's address as it is given, as it is kept, and what it is taken for."""
