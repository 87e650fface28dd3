"""Tests of the documentation: its site, its notebooks, and the commands that it shows."""
