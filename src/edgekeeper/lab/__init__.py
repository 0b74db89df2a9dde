"""The lab: real engines in network namespaces, a fault, a client that asks all the time, and a promise.

It drives the product only through the installed command, and judges it with the outage code that
``edgekeeper probe`` uses. Nothing here touches the host's network: every address lives inside
namespaces whose names carry the runner's pid and start time, and the next run sweeps what a dead
runner left behind.
"""
