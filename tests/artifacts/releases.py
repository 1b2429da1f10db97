"""The samples of ``tests/data/releases``: real packages of older releases of PyTorch, with what is wrong with each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1] / "data" / "releases"
# What no reading shows: an operator must be called, or the values of an index looked at by the code itself.
NEEDS_A_RUN = ("custom-op-missing", "custom-op-exception", "index-out-of-range")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call of a package. ``cause`` is None for a call that is right."""

    release: str
    model: str
    name: str
    cause: str | None
    setup: Path | None

    @property
    def folder(self) -> Path:
        """Where the model lies."""
        return ROOT / self.release / self.model

    @property
    def package(self) -> str:
        """Path of the package."""
        return str(self.folder / "model.pt2")

    @property
    def program(self) -> str:
        """Path of the exported program that it was compiled from."""
        return str(self.folder / "exported.pt2")

    @property
    def inputs(self) -> str:
        """Path of the inputs."""
        return str(self.folder / "samples" / f"{self.name}.pt")

    def __str__(self) -> str:
        return f"{self.release}-{self.model}-{self.name}"


def samples() -> list[Sample]:
    """All of them, by release."""
    found = []
    for manifest in sorted(ROOT.glob("*/manifest.json")):
        for model in json.loads(manifest.read_text(encoding="utf-8")):
            folder = manifest.parent / model["name"]
            found += [
                Sample(
                    release=manifest.parent.name,
                    model=model["name"],
                    name=sample["name"],
                    cause=None if sample["expected_cause"] == "healthy" else sample["expected_cause"],
                    setup=folder / sample["setup"] if sample["setup"] else None,
                )
                for sample in model["samples"]
            ]
    return found
