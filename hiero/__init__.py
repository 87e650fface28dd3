"""Hierarchical phrase-based translation."""

__version__ = "0.1.0"
