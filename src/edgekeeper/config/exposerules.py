"""What must hold within ``expose``: a network that holds its targets, one target for each class that is asked for. Pure."""

from __future__ import annotations

from edgekeeper.config.expose import Expose

Broken = tuple[tuple[str | int, ...], str]


def expose_rules(expose: Expose) -> tuple[Broken, ...]:
    """Every rule that the section breaks: where in it, and what to do."""
    out: list[Broken] = []
    if "default" not in expose.targets:
        out += [
            (("sources", "classes", i), f"class {klass} has no target; add it to targets, or a default")
            for i, klass in enumerate(expose.sources.classes)
            if klass not in expose.targets
        ]
    services = [name for name, target in expose.targets.items() if target.service is not None]
    if services and not expose.sources.cluster:
        out.append((("targets", services[0]), "a Service is looked up in the cluster, but the only source is a file; give the address: ip"))
    if expose.lease is not None and not expose.sources.cluster and "lease" in expose.model_fields_set:
        out.append((("lease",), "a Lease is in the cluster, but the only source is a file; say lease: null"))
    return tuple(out)
