"""Rules, tries and grammar files."""
