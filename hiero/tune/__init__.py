"""Tuning: weights learnt from translations and their references. One file per idea in the papers."""
