"""N-gram language models: read, look up, estimate."""
