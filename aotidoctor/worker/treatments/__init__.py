"""Changes to the call that should make a failure go away."""
