"""Path to ``Artifact``: archive members, metadata, sources, ELF facts. Executes nothing, extracts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.readers.package.constants import read_constants as read_package_constants
    from aotidoctor.readers.package.integrity import damage
    from aotidoctor.readers.package.programs import read_program_archive
    from aotidoctor.readers.package.read import read_artifact, read_damage, read_exported

__all__ = ["damage", "read_artifact", "read_damage", "read_exported", "read_package_constants", "read_program_archive"]

_PLACES = {
    "damage": "integrity",
    "read_artifact": "read",
    "read_damage": "read",
    "read_exported": "read",
    "read_package_constants": "constants:read_constants",
    "read_program_archive": "programs",
}
__getattr__ = names_of(__name__, _PLACES)
