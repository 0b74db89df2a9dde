"""The baseline of expose: a controller as it was run in the field, with its habits, to measure and to drill beside ours.

Each pass asks seven lists one after the other (groups twice), then writes one service at a time. What it takes for its own is any service of mode
tls that leads to its subnet resource; a change is a PUT of the fields that it knows; whatever is its own and not wanted is deleted at
once; the first error ends the pass. ``python -m edgekeeper.lab.plain_expose --help`` runs it every minute against a cluster.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

TIMEOUT_S = 20.0
EVERY_S = 60.0
_METRIC = 9999


class PlainError(Exception):
    """A call failed; the pass is over."""


class Caller:
    """JSON over one kept connection, a call at a time; ``calls`` counts them by method."""

    def __init__(self, url: str, headers: Mapping[str, str], *, ca: str | None = None) -> None:
        parts = urlsplit(url)
        self.calls: Counter[str] = Counter()
        self._base = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json", "Content-Type": "application/json", **headers}
        host = parts.hostname or ""
        if parts.scheme == "https":
            self._wire: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context(cafile=ca)
            )
        else:
            self._wire = http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One call; PlainError when it is not answered with success and JSON."""
        self.calls[method] += 1
        try:
            self._wire.request(method, self._base + path, None if body is None else json.dumps(body), self._headers)
            answer = self._wire.getresponse()
            text = answer.read()
            if answer.status >= 300:
                msg = f"{method} {path}: {answer.status} {text[:200]!r}"
                raise PlainError(msg)
            return json.loads(text) if text else None
        except (OSError, ValueError, http.client.HTTPException) as err:
            self.close()
            msg = f"{method} {path}: {err!r}"
            raise PlainError(msg) from err

    def close(self) -> None:
        """The next call makes another connection."""
        self._wire.close()


class PlainExpose:
    """The mesh's side. ``cidr`` and ``name`` are what its network, its resource and its policy are made and found by."""

    def __init__(self, url: str, token: str, *, cidr: str, name: str = "cluster", group: str = "routers", port: int = 443) -> None:
        self.mesh = Caller(f"{url}/api", {"Authorization": f"Token {token}"})
        self.held: list[str] = []
        """Hosts of the last pass that are somebody else's: a warning in its log."""
        self._cidr = cidr
        self._name = name
        self._group = group
        self._port = port

    def sync(self, hosts: Iterable[str], target: str) -> Mapping[str, int]:
        """One pass, for these hosts and the ingress controller's address; how many calls of each method it took."""
        before = Counter(self.mesh.calls)
        self.held = []
        resource = self._ensure()
        present = {service["domain"]: service for service in self.mesh.ask("GET", "/reverse-proxies/services")}
        wanted = {host: self._body(host, resource, target) for host in hosts}
        for host, body in wanted.items():
            service = present.get(host)
            if service is None:
                self.mesh.ask("POST", "/reverse-proxies/services", body)
            elif not _own(service, resource):
                self.held.append(host)
            elif _leads(service) != _leads(body):
                self.mesh.ask("PUT", f"/reverse-proxies/services/{service['id']}", body)
        for host, service in present.items():
            if host not in wanted and _own(service, resource):
                self.mesh.ask("DELETE", f"/reverse-proxies/services/{service['id']}")
        return self.mesh.calls - before

    def _ensure(self) -> str:
        """Network, resource, router and policy; the resource's id."""
        group = self._first(self.mesh.ask("GET", "/groups"), "name", self._group)
        everybody = self._first(self.mesh.ask("GET", "/groups"), "name", "All")
        if group is None or everybody is None:
            msg = "a group is missing"
            raise PlainError(msg)
        network = self._first(self.mesh.ask("GET", "/networks"), "name", self._name)
        network = network or self.mesh.ask("POST", "/networks", {"name": self._name})
        path = f"/networks/{network['id']}"
        resource = self._first(self.mesh.ask("GET", f"{path}/resources") or [], "address", self._cidr)
        resource = resource or self.mesh.ask(
            "POST", f"{path}/resources", {"name": f"{self._name}-services", "address": self._cidr, "enabled": True, "groups": []}
        )
        if not self.mesh.ask("GET", f"{path}/routers"):
            self.mesh.ask("POST", f"{path}/routers", {"peer_groups": [group["id"]], "metric": _METRIC, "masquerade": True, "enabled": True})
        if self._first(self.mesh.ask("GET", "/policies"), "name", self._name) is None:
            self.mesh.ask("POST", "/policies", self._policy(everybody["id"], resource))
        found: str = resource["id"]
        return found

    @staticmethod
    def _first(things: Iterable[Mapping[str, Any]], key: str, value: str) -> Any:
        return next((thing for thing in things if thing[key] == value), None)

    def _policy(self, everybody: str, resource: Mapping[str, Any]) -> Mapping[str, Any]:
        rule = {
            "name": self._name,
            "enabled": True,
            "action": "accept",
            "bidirectional": False,
            "protocol": "tcp",
            "ports": [str(self._port)],
            "sources": [everybody],
            "destinationResource": {"id": resource["id"], "type": resource["type"]},
        }
        return {"name": self._name, "enabled": True, "rules": [rule]}

    def _body(self, host: str, resource: str, target: str) -> Mapping[str, Any]:
        """All that it says of a service; a restriction that somebody has set is not among it."""
        leads = {
            "target_id": resource,
            "target_type": "subnet",
            "host": target,
            "protocol": "tcp",
            "port": self._port,
            "enabled": True,
            "options": {"proxy_protocol": True},
        }
        return {"name": host, "domain": host, "mode": "tls", "listen_port": self._port, "enabled": True, "targets": [leads]}


def _own(service: Mapping[str, Any], resource: str) -> bool:
    return service["mode"] == "tls" and any(target["target_id"] == resource for target in service["targets"])


def _leads(service: Mapping[str, Any]) -> tuple[Any, ...]:
    target = service["targets"][0]
    return target["target_id"], target.get("host"), target["port"], service["enabled"]


class PlainCluster:
    """The cluster's side: a list of the labelled Ingresses and a read of the ingress controller's Service, each pass."""

    def __init__(self, url: str, token: str, *, label: str, service: str, ca: str | None = None) -> None:
        self.api = Caller(url, {"Authorization": f"Bearer {token}"} if token else {}, ca=ca)
        self._label = label
        self._service = service

    def read(self) -> tuple[list[str], str]:
        """The hosts that are wanted now, and where they lead."""
        found = self.api.ask("GET", f"/apis/networking.k8s.io/v1/ingresses?labelSelector={quote(self._label)}")
        hosts = [rule["host"] for item in found["items"] for rule in item["spec"].get("rules", ()) if rule.get("host")]
        namespace, _, name = self._service.partition("/")
        service = self.api.ask("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
        return list(dict.fromkeys(hosts)), service["spec"]["clusterIP"]


def run(cluster: PlainCluster, mesh: PlainExpose, every_s: float, stop: threading.Event) -> None:
    """Pass after pass; each is one line of JSON on standard output."""
    while True:
        try:
            said: dict[str, Any] = {"ok": True, **mesh.sync(*cluster.read()), "held": mesh.held}
        except PlainError as err:
            said = {"ok": False, "why": str(err)}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        if stop.wait(every_s):
            return


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.plain_expose", description="a controller as it was run in the field.")
    parser.add_argument("--netbird", required=True, metavar="URL")
    parser.add_argument("--token-file", required=True, type=Path)
    parser.add_argument("--cidr", required=True)
    parser.add_argument("--name", default="cluster")
    parser.add_argument("--api", required=True, metavar="URL", help="the kube-apiserver")
    parser.add_argument("--api-token", default="")
    parser.add_argument("--api-ca")
    parser.add_argument("--label", default="edgekeeper.io/public=true")
    parser.add_argument("--service", default="ingress/ingress", help="namespace/name of the ingress controller's Service")
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="SECONDS")
    args = parser.parse_args()
    cluster = PlainCluster(args.api, args.api_token, label=args.label, service=args.service, ca=args.api_ca)
    mesh = PlainExpose(args.netbird, args.token_file.read_text(encoding="utf-8").strip(), cidr=args.cidr, name=args.name)
    with contextlib.suppress(KeyboardInterrupt):
        run(cluster, mesh, args.every, threading.Event())


if __name__ == "__main__":
    main()
