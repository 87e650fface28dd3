"""Dense features as indicators of bins (Clark, Dyer and Lavie 2014)."""
