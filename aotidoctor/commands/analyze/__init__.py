"""Examine a bundle or a saved report from another person."""
