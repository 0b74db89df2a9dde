"""The fake of NetBird's management API as a pure machine: a request and the time in, a status and bytes out. Pure.

``State`` is one instance of the server. ``handle`` is what comes over HTTP; ``hand`` is somebody in the dashboard, who needs no token and
is not counted. Whatever it answers passes the schema; what did not is in ``broken``, which every user of the fake looks at in the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgekeeper.lab import netbird_mesh as mesh
from edgekeeper.lab import netbird_schema as schema
from edgekeeper.lab import netbird_services as services
from edgekeeper.lab.netbird_world import Account, AnswerError, Bucket, Cluster, Counters, Raw, Role, Route, User, World, encoded, stamp

CLUSTER = "proxy.example"
DOMAIN = "home.example"
"""The cluster and the account's own domain that a new state has."""
ROUTERS = "routers"
"""A group with two peers, which may route."""
_SERVICES = ("services", "domains", "clusters")
_NOT_FOUND = {"services": "service", "networks": "network", "resources": "network resource", "routers": "network router", "policies": "policy"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body; ``kind`` is what was asked for (``services``), for the counters and the faults."""

    status: int
    body: bytes
    kind: str


@dataclass(slots=True)
class State:
    """One management server. The first account is ``main``, with a cluster, a domain of its own and two routing peers."""

    world: World = field(default_factory=World)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.world.clusters:
            self.add_cluster(CLUSTER)
        if not self.world.accounts:
            self.add_account("main")

    @property
    def main(self) -> Account:
        """The first account."""
        return next(iter(self.world.accounts.values()))

    @property
    def counters(self) -> Counters:
        """What was asked so far; ``reset`` begins anew."""
        return self.world.counters

    def reset(self) -> Counters:
        """The counters so far; those of the state begin anew."""
        before, self.world.counters = self.world.counters, Counters()
        return before

    # --- what is there

    def add_cluster(self, address: str, *, proxies: int = 1, custom_ports: bool = True, require_subdomain: bool = False) -> Cluster:
        """A cluster of proxies; ``proxies = 0`` takes it offline."""
        made = Cluster(address, self.world.new_id("clu"), proxies, custom_ports, require_subdomain)
        self.world.clusters[address] = made
        return made

    def add_account(self, name: str, *, domain: str | None = DOMAIN) -> Account:
        """An account with its tokens (``nbp_NAME_admin``, ``nbp_NAME_reader``), two routing peers, and a domain of its own."""
        account = self.world.accounts[name] = Account(name)
        for role, user in (("admin", User(name, "admin")), ("reader", User(name, "user", service=True))):
            self.world.users[f"nbp_{name}_{role}"] = user
        peers = [self.world.new_id("pee") for _ in range(2)]
        for index, key in enumerate(peers):
            at = stamp(self.world.now)
            account.peers[key] = {"id": key, "name": f"router-{index}", "created_at": at, "ip": f"192.0.2.{index + 1}", "connected": True, "last_seen": at}
        for group in ("All", ROUTERS):
            mesh.make_group(self.world, account, "", {"name": group, "peers": peers})
        if domain is not None and not any(domain == known["domain"] for other in self.world.accounts.values() for known in other.domains.values()):
            mesh.make_domain(self.world, account, {"domain": domain, "target_cluster": next(iter(self.world.clusters))})["validated"] = True
        return account

    def add_user(self, token: str, role: Role, *, service: bool = False, account: str = "main") -> None:
        """Somebody with a token."""
        self.world.users[token] = User(account, role, service)

    def limit(self, *, on: bool, per_minute: float = 6.0, burst: float = 500.0) -> None:
        """The rate limit, which a self-hosted server has only when it is asked for."""
        self.world.bucket = Bucket(per_minute / 60, burst) if on else None

    def find(self, domain: str) -> Raw | None:
        """The service of a domain, in whichever account; do not change it, use ``edit``."""
        identity = self.world.taken.get(domain)
        found = (account for account in self.world.accounts.values() if identity in account.services)
        return next((services.shown(account, account.services[identity]) for account in found if identity is not None), None)

    def routes(self, cluster: str = CLUSTER, *, only: Sequence[str] | None = None) -> list[Route]:
        """What the proxies of a cluster have in their table; ``only`` these services."""
        found = []
        for account in self.world.accounts.values():
            some = account.services.values() if only is None else [account.services[key] for key in only if key in account.services]
            found += [services.route(self.world, account, service) for service in some if service["proxy_cluster"] == cluster]
        return [route for route in found if route is not None]

    def resync(self) -> None:
        """The proxies connect anew: they are told all services, but only those that are enabled."""
        for account in self.world.accounts.values():
            for identity, service in account.services.items():
                (self.world.live.add if service["enabled"] else self.world.live.discard)(identity)
            for told in self.world.pushed:
                told(account, tuple(account.services))

    # --- somebody in the dashboard

    def hand(self, method: str, path: str, body: Any = None, *, account: str = "main") -> Any:
        """A change by hand, ``path`` without ``/api/``; what the server answers, or AnswerError."""
        before = self.counters.writes
        try:
            made = self._routed(self.world.accounts[account], method, [part for part in path.split("/") if part], {}, body)
        finally:
            self.counters.writes = before
        return json.loads(made[1]) if made[1] else None

    def edit(self, domain: str, **changes: Any) -> Raw:
        """Change fields of a service by hand, as the dashboard does: all of it is sent back. The service as it is then."""
        service = self.find(domain)
        if service is None:
            raise AnswerError(404, f"service {domain} not found")
        account = next(name for name, other in self.world.accounts.items() if service["id"] in other.services)
        edited: Raw = self.hand("PUT", f"reverse-proxies/services/{service['id']}", {**service, **changes}, account=account)
        return edited

    # --- over HTTP

    def handle(self, method: str, target: str, authorization: str | None, body: bytes, now: float) -> Answer:
        """Answer a request; ``target`` is path and query, ``now`` is Unix time."""
        self.world.now = now
        path, _, query = target.partition("?")
        parts = [part for part in path.split("/") if part]
        kind = kind_of(parts[1:])
        self.counters.calls[f"{method} {kind}"] += 1
        try:
            user = self._user(authorization, now)
            self._allow(user, kind, write=method != "GET")
            status, answered = self._routed(self.world.accounts[user.account], method, parts[1:] if parts[:1] == ["api"] else (), _query(query), body)
        except AnswerError as err:
            status, answered = err.status, encoded({"message": err.message, "code": err.status})
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as err:  # a mistake of the fake's: told, and no hang
            self.broken.append(f"{method} {target}: {err!r}")
            status, answered = 500, encoded({"message": "the fake has a mistake", "code": 500})
        if status < 300 and method != "GET":
            self.counters.writes += 1
        self.counters.statuses[status] += 1
        return Answer(status, answered, kind)

    def _user(self, authorization: str | None, now: float) -> User:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() not in ("token", "bearer") or not token:
            raise AnswerError(401, "no valid authentication provided")
        user = self.world.users.get(token)
        if user is None:
            raise AnswerError(401, "token invalid")
        if self.world.bucket is not None and not self.world.bucket.take(token, now):
            self.counters.throttled += 1
            raise AnswerError(429, "too many requests")
        return user

    @staticmethod
    def _allow(user: User, kind: str, *, write: bool) -> None:
        """Services are for admins; a service user of any role may read everything."""
        reads = user.service and not write
        manages = user.role == "network_admin" and kind not in _SERVICES
        if not (user.role in ("owner", "admin") or reads or manages):
            raise AnswerError(403, "permission denied")

    def _routed(self, account: Account, method: str, parts: Sequence[str], query: Mapping[str, str], body: Any) -> tuple[int, bytes]:
        """One call; ``body`` is bytes as they came, or a value when it is by hand."""
        match parts:
            case ["instance", "version"]:
                found: Raw = {"management_current_version": self.world.version, "management_update_available": False}
                return 200, self._passed(schema.VERSION, found)
            case ["reverse-proxies", "services", *rest]:
                return self._services(account, method, rest, body)
            case ["reverse-proxies", "clusters"] if method == "GET":
                return self._list("clusters", [cluster.raw() for cluster in self.world.clusters.values()])
            case ["reverse-proxies", "domains", *rest]:
                return self._domains(account, method, rest, body)
            case ["networks", "routers"] if method == "GET":
                return self._list("routers", list(account.routers.values()))
            case ["networks", holder, ("resources" | "routers") as kind, *rest]:
                self._there("networks", account.networks, holder)
                inside = {key: raw for key, raw in getattr(account, kind).items() if account.network_of[key] == holder}
                return self._things(account, method, kind, rest, query, body, inside, holder)
            case [("networks" | "policies" | "groups" | "peers") as kind, *rest]:
                return self._things(account, method, kind, rest, query, body, getattr(account, kind), "")
            case _:
                raise AnswerError(404, "404 page not found")

    def _services(self, account: Account, method: str, rest: Sequence[str], body: Any) -> tuple[int, bytes]:
        if not rest and method == "GET":
            if account.joined is None:
                account.joined = b"[" + b",".join(account.texts.values()) + b"]"
            return 200, account.joined
        if not rest and method == "POST":
            made, text = services.create(self.world, account, _parsed(body))
            return self._wrote(account, made["id"], text)
        match method, rest:
            case "GET", [identity]:
                return 200, account.texts[self._there("services", account.services, identity)["id"]]
            case "PUT", [identity]:
                return self._wrote(account, identity, services.update(self.world, account, identity, _parsed(body)))
            case "DELETE", [identity]:
                services.remove(self.world, account, identity)
                return 200, b"{}"
            case _:
                raise AnswerError(405, "method not allowed")

    def _wrote(self, account: Account, identity: str, text: bytes) -> tuple[int, bytes]:
        self.broken += schema.problems(schema.SERVICE, services.shown(account, account.services[identity]))
        return 200, text

    def _domains(self, account: Account, method: str, rest: Sequence[str], body: Any) -> tuple[int, bytes]:
        match method, rest:
            case "GET", []:
                return self._list("domains", mesh.domains(self.world, account))
            case "POST", []:
                return 200, self._passed(schema.DOMAIN, mesh.make_domain(self.world, account, _parsed(body)))
            case "GET", [identity, "validate"]:
                self._there("domains", account.domains, identity)
                return 202, b""
            case "DELETE", [identity]:
                del account.domains[self._there("domains", account.domains, identity)["id"]]
                return 204, b""
            case _:
                raise AnswerError(405, "method not allowed")

    def _things(
        self, account: Account, method: str, kind: str, rest: Sequence[str], query: Mapping[str, str], body: Any, there: Mapping[str, Raw], holder: str
    ) -> tuple[int, bytes]:
        show, one = mesh.SHOWN[kind], schema.one(kind)
        if not rest:
            if method == "GET":
                return self._list(kind, self._shown(account, kind, there, query))
            if method == "POST" and kind in mesh.MADE:
                return 200, self._passed(one, mesh.MADE[kind](self.world, account, holder, _parsed(body)))
            raise AnswerError(405, "method not allowed")
        old = self._there(kind, there, rest[0])
        if method == "GET":
            return 200, self._passed(one, show(account, old["id"]))
        if method == "PUT" and kind in mesh.REPLACED:
            return 200, self._passed(one, mesh.REPLACED[kind](self.world, account, old, _parsed(body)))
        if method == "DELETE" and kind in mesh.REMOVED:
            mesh.REMOVED[kind](self.world, account, old["id"])
            return 200, b"{}"
        raise AnswerError(405, "method not allowed")

    @staticmethod
    def _shown(account: Account, kind: str, there: Mapping[str, Raw], query: Mapping[str, str]) -> list[Raw]:
        found = [mesh.SHOWN[kind](account, key) for key in there]
        if kind == "groups" and "name" in query:
            found = [raw for raw in found if raw["name"] == query["name"]]
            if not found:
                raise AnswerError(404, f"group {query['name']} not found")
        if kind == "policies" and not all(raw["rules"] for raw in found):
            raise AnswerError(500, "internal server error")
        return found

    def _list(self, kind: str, found: list[Raw]) -> tuple[int, bytes]:
        """Only an empty list of resources is null."""
        return 200, self._passed(schema.LISTS[kind], found or (None if kind == "resources" else []))

    def _passed(self, shape: schema.Shape, value: Any) -> bytes:
        self.broken += schema.problems(shape, value)
        return encoded(value)

    @staticmethod
    def _there(kind: str, there: Mapping[str, Raw], identity: str) -> Raw:
        if identity not in there:
            raise AnswerError(404, f"{_NOT_FOUND.get(kind, kind[:-1])} {identity} not found")
        return there[identity]


def _parsed(body: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(body) if isinstance(body, bytes) else body
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise AnswerError(400, "couldn't parse JSON request")
    return found


def _query(text: str) -> Mapping[str, str]:
    pairs = (part.partition("=") for part in text.split("&") if part)
    return {key: _decoded(value) for key, _, value in pairs}


def _decoded(text: str) -> str:
    first, *rest = text.replace("+", " ").split("%")
    out = first.encode()
    for part in rest:
        out += bytes.fromhex(part[:2]) + part[2:].encode()
    return out.decode("utf-8", "replace")


def kind_of(parts: Sequence[str]) -> str:
    """What a path (without ``api``) is about: ``services``, ``resources``, ``version``."""
    match parts:
        case ["reverse-proxies", kind, *_] | ["networks", _, ("resources" | "routers") as kind, *_] | ["networks", "routers" as kind] | ["instance", kind]:
            return kind
        case [kind, *_]:
            return kind
        case _:
            return "nothing"
