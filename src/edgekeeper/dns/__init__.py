"""The dns role: dnsdist kept right as members, zones and certificates change.

The way of the data: ``inputs`` gathers full snapshots (members, zones, the certificate, what is
drained, what the members themselves say), ``desired`` decides what is wanted of them, and the shared
supervisor brings it into force. ``role`` wires them.
"""
