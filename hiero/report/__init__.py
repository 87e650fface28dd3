"""What was learnt, in pictures and tables."""
