"""Releases of torch: the first one with each C shim, and those that may have built a package."""
