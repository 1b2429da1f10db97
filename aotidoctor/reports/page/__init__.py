"""The page of a report: its blocks, and its sections, each written once for terminal, Markdown and HTML."""
