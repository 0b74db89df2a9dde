"""edgekeeper keeps a self-hosted network edge answering, and measures how long clients were hurt."""

__version__ = "0.1.0"
