"""Stages of hiero run."""
