"""The index of a bitext, and the rules extracted from it."""
