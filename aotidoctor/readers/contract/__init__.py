"""Artifact to ``Contract``: what the compiled code expects of its caller and of its host. Nothing is executed."""
