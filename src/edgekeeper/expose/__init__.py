"""Hosts of the cluster, published through the mesh's reverse proxy: what is wanted, what is there, what may be done about it."""
