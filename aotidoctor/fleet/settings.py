"""What a fleet is judged with: the options of the command line that are the same for every item."""

from __future__ import annotations

from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record


@record
class Settings:
    """``timeout`` and ``item_timeout`` are the limits of a child run and of an item, in seconds.

    ``memory_limit`` is in bytes. ``triton`` is the release of the server.
    """

    fail_on: str = "error"
    redact: bool = True
    timeout: float = 60.0
    item_timeout: float = 120.0
    memory_limit: int | None = None
    repeat: int = 1
    generate: bool = False
    trust_pickle: bool = False
    model_name: str | None = None
    device: str | None = None
    triton: str | None = None


def settings_json(settings: Settings) -> JsonObject:
    """``settings`` for another process."""
    return {name: getattr(settings, name) for name in _NAMES}


def read_settings(document: JsonObject) -> Settings:
    """The settings that ``settings_json`` wrote, in a process of the same version."""
    return Settings(**{name: document[name] for name in _NAMES})  # type: ignore[arg-type]  # written by ourselves


_NAMES = tuple(Settings.__dataclass_fields__)
