"""What several checks of the package and of the host ask of a case."""
