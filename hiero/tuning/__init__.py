"""Epochs over a tuning set: decode, learn, mix, recover."""
