"""HAProxy: what is wanted of it, how that is written down, and what a running one says and does."""
