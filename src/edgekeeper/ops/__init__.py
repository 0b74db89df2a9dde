"""Health, status, metrics and alarms: what this node says of itself."""
