"""From a sentence to its forest and its k best translations."""
