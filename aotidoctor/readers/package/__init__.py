"""Read packages into ``Artifact``: members, metadata, sources, ELF facts. Executes nothing, extracts nothing."""
