"""``probe:`` what `edgekeeper probe` asks when no target is named on the command line."""

from __future__ import annotations

from pydantic import Field

from edgekeeper.config.kinds import Duration, Items, Section


class Probe(Section):
    """The outage meter's targets and pace."""

    targets: Items[str] = Field((), description="URLs: dns://SERVER/NAME?type=A, tcp://HOST:PORT, http(s)://...")
    every: Duration = Field(1.0, gt=0, description="Period of the questions to each target; an outage is known to within two of them.")
    timeout: Duration = Field(1.0, gt=0, description="How long an answer may take; later is an outage.")
