"""Parallel text: word alignment, and what is estimated from it."""
