"""Objects of the cluster -> claims: which hosts one asks for, for which class, and what its annotations say. Pure.

What the server's schema does not promise is not believed: fields may be null, absent or of another kind (a CRD decides for itself what it
admits). An object is never left out for that: one that is left out would count as gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from edgekeeper.expose.annotations import STATUS
from edgekeeper.expose.kinds import Claim, Origin

OLD_CLASS: Final = "kubernetes.io/ingress.class"
"""The annotation that named the class before ``spec.ingressClassName`` did; it still counts where that is not said."""
_NOTHING: Final[Mapping[str, str]] = {}
_LONGEST = 300


def of_ingress(item: Any, prefix: str, created: float) -> Claim:
    """An Ingress: the hosts of its rules ("" for a rule for all hosts). ``created`` is in Unix seconds."""
    spec = _field(item, "spec")
    hosts = tuple(_text(_field(rule, "host")) for rule in _items(_field(spec, "rules")))
    klass = _text(_field(spec, "ingressClassName")) or _text(_annotations(item).get(OLD_CLASS))
    return Claim(_origin(item, "Ingress", created), _once(hosts), klass, _ours(item, prefix))


def of_route(item: Any, kind: str, prefix: str, created: float, known: Collection[str]) -> Claim:
    """An HTTPRoute or TLSRoute: its hostnames; its class is the name of the Gateway that it is attached to.

    Of several Gateways it is the first one among the ``known`` classes, else the first one of all.
    """
    spec = _field(item, "spec")
    hosts = tuple(_text(host) for host in _items(_field(spec, "hostnames")))
    parents = [_text(_field(ref, "name")) for ref in _items(_field(spec, "parentRefs")) if _text(_field(ref, "kind")) in ("", "Gateway")]
    klass = next((name for name in parents if name in known), parents[0] if parents else "")
    return Claim(_origin(item, kind, created), _once(hosts), klass, _ours(item, prefix))


def status_of(item: Any, prefix: str) -> str:
    """What edgekeeper has written onto the object before; "" when nothing."""
    return _annotations(item).get(f"{prefix}/{STATUS}", "")  # whole: a part of it would look like another one, and be written again and again


def _origin(item: Any, kind: str, created: float) -> Origin:
    meta = _field(item, "metadata")
    return Origin(kind, _text(_field(meta, "namespace")), _text(_field(meta, "name")), _text(_field(meta, "uid")), created)


def _ours(item: Any, prefix: str) -> Mapping[str, str]:
    """The annotations that are meant for edgekeeper, without the one that it writes: its own news is no change."""
    out = {key: value for key, value in _annotations(item).items() if key.startswith(f"{prefix}/") and key != f"{prefix}/{STATUS}"}
    return out or _NOTHING


def _annotations(item: Any) -> dict[str, str]:
    found = _field(_field(item, "metadata"), "annotations")
    return {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, str)} if isinstance(found, Mapping) else {}


def _field(of: Any, name: str) -> Any:
    """A field of a typed object or of a plain mapping; None when it is not there."""
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: Any) -> str:
    """A text, cut to a length that no name has; anything else is none."""
    return value[:_LONGEST] if isinstance(value, str) else ""


def _once(hosts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hosts))
