"""Slow, obvious twins of the kernels: plain Python, nothing shared with the package."""
