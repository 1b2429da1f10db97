"""Hook the calls that a loaded package makes through its slots: trace them, or call a function before each."""
