"""Paths that are URLs: fetched by fsspec, whole into a bounded cache or by ranges. Nothing here runs without one."""
