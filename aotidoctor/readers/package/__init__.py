"""Path to ``Artifact``: archive members, metadata, sources, ELF facts. Executes nothing, extracts nothing."""
