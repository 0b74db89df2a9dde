"""``probe:`` what is asked all day, as a role or by `edgekeeper probe` when no target is named on the command line."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edgekeeper.config.kinds import Duration, Items, Section, Size

Url = Annotated[str, Field(pattern=r"^(dns|tcp|tls|https?|icmp)://[!-~]+$", max_length=2048)]


class Keep(Section):
    """How much of every question's record is kept in ``state_dir``."""

    size: Size = Field(64 * 2**20, ge=65536, description="Size of a file of records; then a new one is begun. A question takes 250 to 350 bytes.")
    files: int = Field(4, ge=1, le=1000, description="Older files that are kept.")


class Probe(Section):
    """The outage meter's targets and pace."""

    targets: Items[Url] = Field(
        description="What is asked, as URLs: dns://SERVER/NAME?type=A, tcp://HOST:PORT, tls://HOST:PORT, http(s)://..., icmp://HOST",
        min_length=1,
        max_length=1000,
    )
    every: Duration = Field(1.0, ge=0.05, le=3600, description="Period of the questions to each target; an outage is known to within two of them.")
    timeout: Duration = Field(1.0, ge=0.01, le=60, description="How long an answer may take; later is an outage. Above 1s it hides black holes.")
    warm: bool = Field(False, description="Ask over a kept connection too: it fails differently.")
    mark: bool = Field(False, description="Give each request by HTTP an id (kp=... in its query): a report finds by it how far clocks are apart.")
    alarm: Duration = Field(5.0, ge=0, description="An outage that may have lasted this long raises an alarm until the target answers again.")
    record: Keep | None = Field(None, description="Keep a record of every question in state_dir/probe, for `edgekeeper report`; not kept when not said.")
