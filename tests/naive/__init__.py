"""The slow, obvious twins of our kernels: plain Python, nothing shared with the package."""
