"""Render, pre-flight, check, swap, run, prove, adopt: once, for every engine.

``decide`` is the mind (pure), ``stage`` keeps generations on disk, ``crew`` owns the processes,
``replace`` exchanges one process for another, ``loop`` feeds events to the mind and carries out
its commands.
"""
