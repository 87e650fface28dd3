"""Learning from post-edits while a model translates."""
