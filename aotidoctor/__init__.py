"""Finds out why a PyTorch AOTInductor package fails, and proves it."""
