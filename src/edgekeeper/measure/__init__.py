"""From samples to outages with honest bounds; used by the probe, the report and the lab alike."""
