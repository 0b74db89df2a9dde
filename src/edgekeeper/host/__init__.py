"""The only road to files, processes, sockets and the clock."""
