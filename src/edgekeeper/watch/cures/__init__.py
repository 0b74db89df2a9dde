"""What cures a service: Docker, systemd, a command, a request. One file a kind; each act has its own deadline."""
