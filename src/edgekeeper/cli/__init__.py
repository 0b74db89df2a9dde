"""The command line: one file a group of commands, each imported only when it is called."""
