"""What each engine knows about itself; engines never know each other."""
