"""Learners: from candidates to weights, without files, threads or processes."""
