"""Faults on a real GPU: compiled, seeded and examined on the machine itself, and every outcome written down."""
