"""The outage meter: asks all the time, keeps what bounds an outage, and tells; as a command and as a role."""
