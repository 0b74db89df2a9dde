"""keepalived: its configuration, its validator, its states."""
