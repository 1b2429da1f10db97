"""A report as Markdown, for an issue or a file."""
