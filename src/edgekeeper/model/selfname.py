"""The question that dnsdist answers itself, so that its own death is told from that of what stands behind it. Pure."""

from __future__ import annotations

SELF_NAME = "alive.edgekeeper.invalid."
"""Below ``invalid.``, which exists for nobody (RFC 6761): an engine that does not know the question says so, which shows as well that it lives."""

SELF_TYPE = "TXT"
SELF_TEXT = "alive"
