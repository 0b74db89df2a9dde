"""dnsdist: what a topology is, how it is written down for each version, and how a running one is changed."""
