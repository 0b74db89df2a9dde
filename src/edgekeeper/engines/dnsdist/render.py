"""Which renderer writes for which dnsdist, and the names of the files. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from edgekeeper.engines.dnsdist import lua, yaml
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.seat import Seat
from edgekeeper.engines.dnsdist.topology import Topology
from edgekeeper.errors import UsageError


def choose(renderer: str, features: Features) -> str:
    """``yaml`` or ``lua`` for ``auto``; UsageError when this dnsdist cannot read what was asked for."""
    if renderer == "auto":
        return "yaml" if features.yaml else "lua"
    if renderer == "yaml" and not features.yaml:
        msg = f"dnsdist {features.text} reads no YAML; say engine.renderer: auto or lua, or install 2.0 or later"
        raise UsageError(msg)
    return renderer


def files(topology: Topology, seat: Seat, features: Features, renderer: str) -> Mapping[str, str]:
    """File name to text."""
    if choose(renderer, features) == "yaml":
        return {"dnsdist.yml": yaml.render(topology, seat, features), "dnsdist.lua": yaml.render_functions(topology)}
    return {"dnsdist.conf": lua.render(topology, seat, features)}


def main_file(features: Features, renderer: str) -> str:
    """The file that dnsdist is started with."""
    return "dnsdist.yml" if choose(renderer, features) == "yaml" else "dnsdist.conf"
