"""Watchdogs: a log line arms, a probe confirms, a cure is applied under a budget and proved, and nothing that was suppressed is forgotten."""
