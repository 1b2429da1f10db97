"""Change the call so that a failure should go away."""
