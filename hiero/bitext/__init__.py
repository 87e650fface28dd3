"""Parallel text: word alignment, rule extraction, language model estimation."""
