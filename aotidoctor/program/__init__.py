"""Rules for exported programs, applied to the archive or to the answer of a child. Pure reading."""
