"""Learnt weights as pictures and tables."""
