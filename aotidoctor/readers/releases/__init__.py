"""Releases of torch: which one first had a C shim, and which ones may have built a package."""
