"""From logs and recordings to who was hurt, for how long, and by what."""
