"""Parallel text and its alignments as data."""
