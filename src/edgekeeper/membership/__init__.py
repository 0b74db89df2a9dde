"""Who may answer right now: sources of full snapshots, and the choice between old and new ones."""
