"""Pages of a report: for a terminal, a change ticket, a browser, a program. Pure: a ``Report`` goes in, text comes out."""
