"""What the results of a fleet show together.

    results folders ──► table ──► clusters, traits, timeline, hosts and causes ──► Overview
    baseline, accepted list ──────────────────────────────────────────────────────┘

pandas does the tables, and is imported by ``table`` and what stands on it only: the extra ``fleet``.
"""
