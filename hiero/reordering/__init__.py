"""Orientation models (Alrajeh and Niranjan 2014)."""
