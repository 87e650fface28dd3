"""BLEU, chrF, TER and significance tests."""
