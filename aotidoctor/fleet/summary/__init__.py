"""Summarize the results of a fleet.

    results folders ──► table ──► clusters, traits, timeline, hosts and causes ──► Overview
    baseline, accepted list ──────────────────────────────────────────────────────┘

Only ``table`` and its importers need pandas: the extra ``fleet``.
"""
