"""Pack everything that others need to find a cause into one redacted file."""
