"""Orientation models for reordering (Alrajeh and Niranjan 2014)."""
