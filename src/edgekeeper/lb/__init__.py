"""The lb role: HAProxy kept right, and no client left on a server that is dead."""
