"""The work of one command, from files to files."""
