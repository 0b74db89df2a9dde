"""What would be run: rendered from the config and the source as they are now, and judged by the real engine."""

from __future__ import annotations

from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.config.secret import SecretSource
from edgekeeper.dns import drained
from edgekeeper.dns.build import detect
from edgekeeper.dns.desired import in_service
from edgekeeper.dns.visit import members
from edgekeeper.engines.dnsdist.topology import build
from edgekeeper.host import secrets
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.local import as_members
from edgekeeper.membership.resolve import resolved
from edgekeeper.model.preview import Preview
from edgekeeper.supervise.ask import refusal_of


async def preview(root: Root, *, ask: bool) -> Preview:
    """Render; with ``ask``, have dnsdist judge the files in a folder that is removed again."""
    assert root.dns is not None  # noqa: S101 - the command has checked it
    dns = root.dns
    engine = await detect(dns)
    found, _, notes = await members(root, SystemClock())
    gone = drained.read(Path(root.state_dir) / "dns")
    serving, why = in_service(found, gone.names, (), forced=gone.forced)
    forward = {}
    for zone, entries in dns.forward.items():
        forward[zone], more = await resolved(as_members(tuple(entries)), {})
        notes += more
    secret = secrets.read(dns.proxy_protocol) if isinstance(dns.proxy_protocol, SecretSource) else None
    topology = build(dns, serving, dns.zones.static, engine.features, proxy_secret=secret, forward=forward)
    seat = engine.hands.new_seat(topology)
    files = engine.engine.files(topology, seat)
    refusal = await refusal_of(engine.engine, files) if ask else None
    return Preview(files, engine.features.text, tuple(n for n in (*topology.notes, *notes, why) if n), refusal)
