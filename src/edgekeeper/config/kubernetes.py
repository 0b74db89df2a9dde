"""``kubernetes:`` how the cluster's API is reached. Every part of edgekeeper that asks a cluster asks it this way."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from edgekeeper.config.kinds import Duration, Items, Path, Section

ServerUrl = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9\[\]:._-]+/?$", max_length=300)]
DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]


class Kubernetes(Section):
    """The cluster. Without a kubeconfig: the service account of the pod in which edgekeeper runs."""

    kubeconfig: Path | None = Field(None, description="A kubeconfig file; in-cluster when not said.")
    context: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(None, description="Context of the kubeconfig; its current one when not said.")
    servers: Items[ServerUrl] = Field(
        (), description="Each kube-apiserver by its own address; asked in turn when the one in use does not answer, so that one dead server holds nothing up."
    )
    namespace: DnsLabel = Field("edgekeeper", description="Where edgekeeper's own Leases are.")
    timeout: Duration = Field(5.0, ge=0.5, le=60, description="The longest wait for any answer but a watch's.")
    silence: Duration = Field(15.0, ge=5, le=120, description="A watch that is silent for so long has lost its server, whatever TCP says.")

    @model_validator(mode="after")
    def _context_of_a_file(self) -> Self:
        if self.context is not None and self.kubeconfig is None:
            msg = "context needs a kubeconfig; a pod's service account has none"
            raise ValueError(msg)
        return self
