"""One file per format. A format shows a ``Report``; it never judges, and it never raises for what a child printed.

Only ``terminal`` needs rich, so nothing is imported here.
"""
