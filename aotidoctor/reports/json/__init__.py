"""A report as JSON, and the schemas of the documents."""
