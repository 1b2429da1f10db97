"""Makes the packages of the end-to-end tests: base models compiled once, everything else by editing."""
