"""Where the lines of a service come from: a file, journald, a command, Docker. One file a kind; a source runs for ever."""
