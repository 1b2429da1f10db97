"""Every model of the trial, by family; the families are imported only to be built, because their libraries are big."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from tests.trial import families
from tests.trial.model import TORCHVISION, Model

FAMILIES = tuple(sorted(item.name for item in pkgutil.iter_modules(families.__path__)))


def load(names: tuple[str, ...] = (), families: tuple[str, ...] = FAMILIES) -> dict[str, Model]:
    """The models of ``families``, all or those whose name or trait is among ``names``."""
    exec(TORCHVISION, {"__name__": "torchvision_operators"})
    found: dict[str, Model] = {}
    for family in families:
        module = importlib.import_module(f"tests.trial.families.{family}")
        for model in module.MODELS:
            if model.name in found:
                sys.exit(f"two models are called {model.name}")
            found[model.name] = model
    if not names:
        return {name: model for name, model in found.items() if not model.heavy}
    return {name: model for name, model in found.items() if name in names or set(model.traits) & set(names)}
