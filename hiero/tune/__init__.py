"""Tuning: weights learnt from translations and their references. One module per method of a paper."""
