"""The archive of an exported program with its constants: what is listed, what is there, where the bytes are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a storage, read where they lie: ``read_at(offset, length)`` gives fewer at the end."""

    size: int
    read_at: Callable[[int, int], bytes] = field(compare=False, repr=False)


@record
class StoredTensor:
    """A constant with its bytes: view metadata in elements, the storage, or why there is none to read (``problem``)."""

    fqn: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    offset: int = 0
    content: Content | None = None
    problem: str | None = None


@record
class Payload:
    """One entry of an archive's list of weights or constants.

    ``member`` holds it, None when the archive has no such member; ``nbytes`` is that member's size.
    """

    stored: StoredTensor
    member: str | None
    nbytes: int | None = None
    parameter: bool = False
    requires_grad: bool = False


@record
class PickledState:
    """Weights or constants that lie in one pickle: of which member, and where its bytes are in the file."""

    member: str
    offset: int
    size: int


Payloads = Mapping[str, Payload]


@record
class ProgramArchive:
    """One program of an archive.

    ``layout`` is ``pt2`` (2.9 and later), ``pickled`` (2.7, 2.8) or ``legacy``. ``document`` is the program's JSON.
    ``weights`` and ``constants`` are by the name in the model, None when the archive does not list them: then
    ``weights_pickle`` and ``constants_pickle`` say where they are, if they are anywhere. ``others`` are the programs
    beside this one. ``problems`` tell what could not be read.
    """

    path: str
    member: str
    layout: str
    facts: ExportedFacts
    document: JsonObject
    weights: Payloads | None = None
    constants: Payloads | None = None
    weights_pickle: PickledState | None = None
    constants_pickle: PickledState | None = None
    has_samples: bool = True
    others: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
