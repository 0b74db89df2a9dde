"""The only road to the API of a Kubernetes cluster.

Importing any of it without the extra that brings the client raises MissingError; who may do without a cluster imports it where the need begins.
"""

from __future__ import annotations

from importlib.util import find_spec

from edgekeeper.errors import MissingError

if find_spec("lightkube") is None:
    _MSG = "asking a cluster needs the Kubernetes client; install edgekeeper[kube]"
    raise MissingError(_MSG)
