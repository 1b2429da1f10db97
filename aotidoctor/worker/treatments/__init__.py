"""Change a call, its inputs or its package so that a failure should disappear."""
