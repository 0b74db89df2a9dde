"""The config file: one typed, frozen section a role. Sections are values without behaviour.

Only the command line reads the file (``config.load``); everything else is handed its own section.
"""
