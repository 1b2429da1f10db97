"""Custom operators, alone and as the package calls them."""
