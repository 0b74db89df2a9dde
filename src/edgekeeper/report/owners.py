"""From a pod's name to the workload that owns it, and from a route to the workload that feeds it. Pure.

Names are made by Kubernetes, so that they tell: a ReplicaSet's hash has only the ten characters that its encoding can give, five
characters of a vowel-free alphabet are added to every name that a controller generates, a StatefulSet and a CloudNativePG cluster
number their pods. (k8s.io/apimachinery ``util/rand``, read on 2026-11-30.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_REPLICA = re.compile(rf"(.+)-[0-9bcdf]{{5,10}}-[{_ALPHABET}]{{5}}")
_CRON = re.compile(rf"(.+)-[0-9]{{8,10}}-[{_ALPHABET}]{{5}}")
_NUMBERED = re.compile(r"(.+)-([0-9]{1,5})")
_ENTRY_POINTS: Final = frozenset({"web", "websecure", "http", "https"})
STORES: Final = frozenset({"pg", "postgres", "postgresql", "mariadb", "mysql", "redis", "valkey", "mongodb", "influxdb", "db", "database"})
"""Last words of the names of databases; by ``-pg`` and its like people tell their clusters from applications."""
_GENERATED = re.compile(rf"(.+)-[{_ALPHABET}]{{5}}")


@dataclass(frozen=True, slots=True)
class Owner:
    """A workload, as far as the name of its pod tells.

    ``kind`` is "replicas" (a Deployment's), "numbered" (StatefulSet, database instance), "job", "generated" (DaemonSet or Job) or
    "bare". ``same`` is what stays when the pod moves: a numbered pod keeps its own name, another one only its workload's.
    """

    namespace: str
    name: str
    kind: str
    same: str

    @property
    def text(self) -> str:
        """``namespace/name``, or the name alone where no namespace was told."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def owner_of(pod: str) -> Owner:
    """The owner of ``namespace/pod`` (or of a pod whose namespace is not known), by the suffix of its name."""
    namespace, _, name = pod.rpartition("/")
    prefix = f"{namespace}/" if namespace else ""
    for kind, pattern in (("job", _CRON), ("replicas", _REPLICA)):
        if match := pattern.fullmatch(name):
            return Owner(namespace, match[1], kind, prefix + match[1])
    if match := _NUMBERED.fullmatch(name):
        return Owner(namespace, match[1], "numbered", prefix + name)
    if match := _GENERATED.fullmatch(name):
        return Owner(namespace, match[1], "generated", prefix + match[1])
    return Owner(namespace, name, "bare", prefix + name)


def feeder(router: str, workloads: Iterable[str], told: Mapping[str, str]) -> tuple[str, ...]:
    """The workloads (``namespace/name``) whose pods answer for a route: as the config says, else as the names suggest; () where nothing does.

    Traefik names a route ``name@provider``, ``namespace-name-host-path@kubernetes`` or ``namespace-name-hash@kubernetescrd``, and may
    put the entry point before. A workload is taken where its name, or namespace and name, are whole words at the route's begin; the
    longest match wins, so that ``git-gitea`` is not fed by ``git``. A database that bears its application's name (``gitea-pg``) feeds
    it too.
    """
    if router in told:
        return (told[router],)
    route = _words(router.rpartition(" -> ")[2].partition("@")[0])
    routes = [route, route[1:]] if route and route[0] in _ENTRY_POINTS else [route]
    best: list[str] = []
    length = 0
    for workload in dict.fromkeys(workloads):
        namespace, _, name = workload.rpartition("/")
        bare = _words(name)
        while len(bare) > 1 and bare[-1] in STORES:
            bare.pop()
        for form in (_words(namespace) + bare, bare):
            if form and any(words[: len(form)] == form for words in routes) and len(form) >= length:
                best, length = (best if len(form) == length else []), len(form)
                if workload not in best:
                    best.append(workload)
    return tuple(best)


def feeds(routers: Iterable[str], workloads: Iterable[str], told: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each route the workloads that feed it."""
    names = list(workloads)
    return {router: feeder(router, names, told) for router in routers}


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[-_./]+", text.lower()) if word]
