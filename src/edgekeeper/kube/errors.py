"""What a cluster's API can refuse or fail to do, as edgekeeper's own errors. Pure.

::

    MissingError
    ├── Unreachable   no answer, or one that cannot be read
    ├── Expired       410: the version to go on from is too old
    └── Absent        404: the object, or its whole kind (a CRD that is not installed)
    RefusedError
    └── Forbidden     401, 403: a right is missing
    StepFailedError
    ├── Conflict      409: somebody else changed it, or it exists already
    ├── Blocked       429: not now (a PodDisruptionBudget, too many requests)
    └── Invalid       400, 422 and whatever else is refused
"""

from __future__ import annotations

from edgekeeper.errors import MissingError, RefusedError, StepFailedError


class Unreachable(MissingError):  # noqa: N818 -- named as what the API does, like the codes
    """The API gives no answer within the deadline, or one that cannot be read."""


class Expired(MissingError):  # noqa: N818
    """The version to go on from is too old for the server: list again."""


class Absent(MissingError):  # noqa: N818
    """There is no such object, or the cluster does not know its kind."""


class Forbidden(RefusedError):  # noqa: N818
    """The API does not allow it to who we are."""


class Conflict(StepFailedError):  # noqa: N818
    """Somebody else changed the object since it was read, or it exists already."""


class Blocked(StepFailedError):  # noqa: N818
    """Not now: ``again_s`` is when the server says to come again, None when it does not say."""

    def __init__(self, message: str, again_s: float | None = None) -> None:
        super().__init__(message)
        self.again_s = again_s


class Invalid(StepFailedError):  # noqa: N818
    """The server refuses what it was given."""
