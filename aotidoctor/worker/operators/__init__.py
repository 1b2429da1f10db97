"""Call custom operators alone, and record how the package calls them."""
