"""The error of a treatment step."""

from __future__ import annotations


class TreatmentError(Exception):
    """A step that cannot be applied to these inputs."""
