"""The owner's mark on a service: written into its name, the only free text that the mesh's API has; never guessed. Pure.

``edgekeeper:OWNER/CLUSTER:KIND:NAMESPACE/NAME`` and, where they apply, ``:keep``, ``:force`` and ``:leaving``. At most 255 characters,
the API's limit: what is longer of the object's name is cut, and a digest of the whole stands in its place.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Final, Self

from edgekeeper.expose.kinds import Origin

LONGEST: Final = 255
_FORM = re.compile(r"edgekeeper:([a-z0-9-]{1,32})/([a-z0-9-]{1,32}):([A-Za-z]{1,20}):([!-9;-~]{1,255})((?::(?:keep|force|leaving)){0,3})")
_UNSAFE = re.compile(r"[^!-9;-~]")  # the mark's parts are printable ASCII without blanks and colons


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose a service is, for which object it was made, and what that object said for the time when it is gone.

    ``keep``: leave the service. ``force``: no brake counts it. ``leaving``: it was disabled because its host is not wanted any more.
    """

    owner: str
    cluster: str
    kind: str
    object: str
    keep: bool = False
    force: bool = False
    leaving: bool = False

    @classmethod
    def of(cls, owner: str, cluster: str, origin: Origin, *, keep: bool = False, force: bool = False) -> Self:
        """The mark for an object."""
        whole = f"{origin.namespace}/{origin.name}" if origin.namespace else origin.name
        room = LONGEST - len(f"edgekeeper:{owner}/{cluster}:{origin.kind}::keep:force:leaving")
        safe = _UNSAFE.sub("_", whole) or "_"
        if len(safe) > room or safe != whole:
            digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:10]
            safe = f"{safe[: room - 11]}~{digest}"
        return cls(owner, cluster, origin.kind, safe, keep, force)

    @property
    def text(self) -> str:
        """As it is written into the name."""
        flags = "".join(f":{flag}" for flag in ("keep", "force", "leaving") if getattr(self, flag))
        return f"edgekeeper:{self.owner}/{self.cluster}:{self.kind}:{self.object}{flags}"

    def gone(self) -> Self:
        """The same mark on a service that is disabled before it is deleted."""
        return replace(self, leaving=True)

    def ours(self, owner: str, cluster: str) -> bool:
        """Whether this owner wrote it, for this cluster."""
        return (self.owner, self.cluster) == (owner, cluster)


def read(name: str) -> Mark | None:
    """The mark in a service's name, or None: a name that merely resembles one is somebody else's."""
    found = _FORM.fullmatch(name) if len(name) <= LONGEST else None
    if found is None:
        return None
    owner, cluster, kind, thing, flags = found.groups()
    said = [flag for flag in flags.split(":") if flag]
    if said != [flag for flag in ("keep", "force", "leaving") if flag in said]:
        return None
    return Mark(owner, cluster, kind, thing, "keep" in said, "force" in said, "leaving" in said)
