"""Where the wanted hosts come from: objects of the cluster, and a file."""
