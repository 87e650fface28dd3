"""Orientation models: which way parts of a sentence turn in translation (Alrajeh and Niranjan 2014)."""
