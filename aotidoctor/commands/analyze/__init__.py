"""Examine a bundle or a saved report that somebody else sent."""
