"""Reports of run directories: what they hold, as records, and as a page."""
