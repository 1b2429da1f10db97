"""Describe the file as facts: a package, the stamp of its origin, or an exported program with its constants.

No judgement: the checks under ``artifact_*`` turn these facts into findings. Sizes of an exported program are texts in
the compiler's own spelling (``4``, ``s77``, ``8*s40``); a symbol that begins with ``u`` is known at run time only.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aotidoctor.model.record import JsonObject, record

if TYPE_CHECKING:
    from aotidoctor.model.other_artifacts import ExecutorchFile, Precompiled


# An exported program as its JSON describes it.
@record
class ProgramTensor:
    """Assumptions of the program about a tensor; strides and sizes as texts, None where it has none."""

    dtype: str | None = None
    shape: tuple[str, ...] | None = None
    stride: tuple[str, ...] | None = None
    device: str | None = None


@record
class ProgramLeaf:
    """One leaf of the call: ``kind`` is ``tensor``, ``constant`` (``value`` was baked in at export) or ``symbol``.

    ``path`` is the user's name of it, the name in the graph where the call spec does not tell.
    """

    name: str
    path: str
    kind: str
    tensor: ProgramTensor | None = None
    value: str | None = None


@record
class ProgramOutput:
    """One output of the graph. ``kind`` is as in the signature: ``user_output``, ``buffer_mutation``...

    ``name`` is None for a constant; ``target`` is what a mutation goes to.
    """

    kind: str
    name: str | None
    target: str | None = None
    tensor: ProgramTensor | None = None


@record
class ProgramConstant:
    """A ``parameter``, ``buffer``, ``tensor_constant`` or ``custom_obj``: ``name`` in the graph, ``fqn`` in the model.

    ``persistent`` is None for anything but a buffer. ``used`` tells whether a node of the graph reads it.
    """

    name: str
    fqn: str
    kind: str
    persistent: bool | None = None
    tensor: ProgramTensor | None = None
    used: bool = True


@record
class SizeRange:
    """Inclusive bounds of a size; None where there is none."""

    low: int | None = None
    high: int | None = None


class ArtifactKind(enum.Enum):
    """Kind of a file, from member names and magic bytes alone."""

    AOTI_PACKAGE = "aoti-package"
    AOTI_DIRECTORY = "aoti-directory"
    EXPORTED_PROGRAM = "exported-program"
    TORCHSCRIPT = "torchscript"
    TORCH_SAVE = "torch-save"
    BARE_SO = "bare-so"
    LFS_POINTER = "lfs-pointer"
    SAFETENSORS = "safetensors"
    ONNX = "onnx"
    ZIP = "zip"
    BUNDLE = "bundle"
    PICKLE = "pickle"
    TEXT = "text"
    DIRECTORY = "directory"
    EMPTY = "empty"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    TRUNCATED_ZIP = "truncated-zip"
    EXECUTORCH_PROGRAM = "executorch-program"
    EXECUTORCH_DATA = "executorch-data"
    AOT_COMPILED = "aot-compiled"
    COMPILED_ARTIFACT = "compiled-artifact"
    COMPILE_CACHE = "compile-cache"
    PRECOMPILE_CODE = "precompile-code"
    PRECOMPILE_CACHE = "precompile-cache"
    PACKAGE_FOLDER = "package-folder"
    OTHER = "other"


# First bytes of files that are no artifact, and what these are.
OTHER_MAGIC = (
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"!<arch>\n", "a static library (ar archive)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"GGUF", "a GGUF model"),
    (b"%PDF", "a PDF document"),
)
RUNNABLE_KINDS = frozenset({ArtifactKind.AOTI_PACKAGE, ArtifactKind.AOTI_DIRECTORY, ArtifactKind.BARE_SO})
"""Kinds that can be loaded and called."""
PRECOMPILED_KINDS = frozenset(
    {
        *(ArtifactKind.AOT_COMPILED, ArtifactKind.COMPILED_ARTIFACT, ArtifactKind.COMPILE_CACHE),
        *(ArtifactKind.PRECOMPILE_CODE, ArtifactKind.PRECOMPILE_CACHE),
    }
)
"""What torch.compile leaves behind: no packages, read by a reader of their own."""


class CrcState(enum.Enum):
    """Result of comparing a member's data with its recorded CRC."""

    GOOD = "good"
    BAD = "bad"
    NOT_READ = "not-read"
    NONE = "none"


@record
class Member:
    """One archive member (or file of a directory package). Sizes and offsets in bytes.

    ``data_offset`` is where the payload begins in the file when it is stored (not deflated), else None.
    ``path`` is the file on disk that holds the payload: the archive itself, or the file of a directory package.
    """

    name: str
    size: int
    compressed_size: int
    crc: CrcState
    data_offset: int | None
    path: str
    is_symlink: bool = False


@record
class SymbolRef:
    """An undefined dynamic symbol, with the version and library it must come from where ``.gnu.version_r`` says so."""

    name: str
    version: str | None = None
    library: str | None = None
    weak: bool = False


@record
class DebugFeatures:
    """Debug facilities that were compiled into the shared object; None where the object could not tell."""

    input_checks: bool | None = None
    printer_level: int | None = None
    nan_asserts: bool | None = None
    kernel_profile: bool | None = None


@record
class SharedObject:
    """Facts of the ``.so``, read in place.

    ``format`` is ``elf``, ``pe``, ``macho`` or ``unknown``. ``machine`` is as ``platform.machine()`` prints it
    (``x86_64``, ``aarch64``...). ``constants_span`` is the size in bytes between ``_binary_constants_bin_start`` and
    ``_end`` (None when the symbols are absent). ``executable_stack`` says whether it asks for a stack that may hold
    code. ``gpu_targets`` are the GPUs that code linked into it is for. Of a Mach-O file ``machines`` are all that a
    universal one has code for, ``least_system`` is the oldest macOS that loads it (``12.0``), and ``signed`` whether it
    has a signature. ``problem`` says why parsing stopped, None when it did not.
    """

    member: str
    format: str
    size: int
    machine: str | None = None
    bits: int | None = None
    type: str | None = None
    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    undefined: tuple[SymbolRef, ...] = ()
    defined_entry_points: tuple[str, ...] = ()
    kernel_symbols: tuple[str, ...] = ()
    constants_span: int | None = None
    features: DebugFeatures = field(default_factory=DebugFeatures)
    has_debug_lines: bool = False
    truncated_at: int | None = None
    executable_stack: bool | None = None
    gpu_targets: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    least_system: str | None = None
    signed: bool | None = None
    problem: str | None = None


@record
class Metadata:
    """One ``*_metadata.json``: its member, its values, and why it did not parse (None when it did).

    ``stamp`` is the text that ``aotidoctor stamp`` wrote, which is not among the values.
    """

    member: str
    values: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    stamp: str | None = None


@record
class ExternNode:
    """One proxy-executor node of ``<hash>.wrapper.json``: a custom or unshimmed operator call.

    ``output_names`` are the wrapper's names for the tensors that come back, those of lists included.
    """

    name: str
    target: str
    argument_names: tuple[str, ...] = ()
    output_kinds: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()


@record
class ModelEntry:
    """One model of the package. Texts are decoded in full (wrapper and kernel sources are small); weights are not read.

    ``sources`` maps member name to text for every ``.cpp`` (wrapper first). ``gpu_code`` are ``.cubin``, ``.fatbin``,
    ``.hsaco``, ``.spv``, ``.zebin`` members. ``layout`` is ``pt2`` (2.8+) or ``legacy`` (2.5 to 2.7) or ``bare``.
    ``root`` is the folder in the archive that holds its ``data/`` (``""`` for the top). ``build_folders`` are the
    folders of headers and libraries that a package without a shared object hands to the compiler, ``compiler`` is its
    name.
    """

    name: str
    layout: str
    members: tuple[Member, ...]
    shared_objects: tuple[SharedObject, ...] = ()
    wrapper_member: str | None = None
    wrapper_cpp: str | None = None
    kernel_sources: Mapping[str, str] = field(default_factory=dict)
    metadata: tuple[Metadata, ...] = ()
    extern_nodes: tuple[ExternNode, ...] = ()
    extern_member: str | None = None
    extern_problem: str | None = None
    gpu_code: tuple[str, ...] = ()
    gpu_targets: tuple[str, ...] = ()
    weights_location: str = "unknown"
    cpp_only: bool = False
    build_folders: tuple[str, ...] = ()
    compiler: str | None = None
    kernel_information: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    root: str = ""


@record
class ExportedFacts:
    """Facts from the JSON of a torch.export archive, without deserialising it (also used for ``--reference``).

    ``constant_inputs`` maps the user's path of a non-tensor leaf to the repr of the value baked in at export.
    ``leaves`` are all leaves of the call; ``ranges`` maps a symbol (or an expression of one) to its bounds; ``schema``
    is the version of the format, ``8.20``. ``functions`` maps the nodes that lead from an input to an output to what
    they compute: ``gelu_3`` to ``aten.gelu(tanh)``; ``nodes`` are the names of all nodes and of their results.
    """

    name: str
    constant_inputs: Mapping[str, str] = field(default_factory=dict)
    custom_ops: tuple[str, ...] = ()
    in_spec: str | None = None
    ops: Mapping[str, int] = field(default_factory=dict)
    torch_version: str | None = None
    out_spec: str | None = None
    schema: str | None = None
    dialects: tuple[str, ...] = ()
    leaves: tuple[ProgramLeaf, ...] = ()
    outputs: tuple[ProgramOutput, ...] = ()
    constants: tuple[ProgramConstant, ...] = ()
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()


@record
class Artifact:
    """A file and its contents.

    ``names_*`` are member names that break a rule of archives; ``first_line`` is the first text line of a text file.
    ``unread_crc`` lists members too large to be read for their CRC. ``overlapping`` lists members whose bytes another
    member claims too. ``counts`` counts lines or members that were met and not understood. ``other_contents`` says in
    words what the archive holds besides compiled models and exported programs. ``executorch`` is the content of an
    ExecuTorch file, ``precompiled`` that of an artifact of torch.compile, for those who read them.
    """

    path: str
    kind: ArtifactKind
    size: int
    sha256: str | None = None
    prefix: str | None = None
    archive_version: str | None = None
    archive_format: str | None = None
    members: tuple[Member, ...] = ()
    models: tuple[ModelEntry, ...] = ()
    exported: tuple[ExportedFacts, ...] = ()
    names_duplicate: tuple[str, ...] = ()
    names_unsafe: tuple[str, ...] = ()
    names_symlink: tuple[str, ...] = ()
    names_directory: tuple[str, ...] = ()
    bad_crc: tuple[str, ...] = ()
    unread_crc: tuple[str, ...] = ()
    oversized: tuple[str, ...] = ()
    overlapping: tuple[str, ...] = ()
    first_line: str | None = None
    problem: str | None = None
    is_symlink: bool = False
    link_target: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    other_contents: tuple[str, ...] = ()
    executorch: ExecutorchFile | None = None
    precompiled: Precompiled | None = None

    @property
    def unpacked_size(self) -> int:
        """Bytes of all its members."""
        return sum(member.size for member in self.members)

    def model(self, name: str) -> ModelEntry | None:
        """The model called ``name``, or None."""
        return next((entry for entry in self.models if entry.name == name), None)


# The stamp that `aotidoctor stamp` writes into the metadata. The key of the metadata that holds it, as JSON text.
STAMP_KEY = "AOTIDOCTOR_STAMP"
STAMP_SCHEMA = "aotidoctor.stamp/1"


@record
class SampleTensor:
    """One tensor of the sample that the program was exported with; never its values."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    device: str = "cpu"


@record
class Stamp:
    """Origin of a package.

    ``torch`` and ``compiler`` are those that built it, None where the stamp was made without them. ``program`` is a
    hash of the graph (64 hex digits). ``weights`` maps the name of a constant in the model to a hash of its dtype, its
    shape and its bytes (16 hex digits); constants of a few bytes, whose hash would give them away, have none.
    ``facts`` are those of the exported program: ranges as exported and values fixed at export among them.
    """

    schema: str
    tool: str
    program: str
    facts: ExportedFacts
    torch: str | None = None
    compiler: str | None = None
    python: str | None = None
    weights: Mapping[str, str] = field(default_factory=dict)
    sample: tuple[SampleTensor, ...] = ()
    left_out: tuple[str, ...] = ()


@record
class StampSeen:
    """A stamp beside the package that carries it.

    ``stamp`` is None where it cannot be read (``problem``). ``equal`` counts the constants whose bytes are the stamped
    ones, ``differing`` names the others, ``unread`` says why some were not looked at.
    """

    member: str
    stamp: Stamp | None = None
    problem: str | None = None
    equal: int = 0
    differing: tuple[str, ...] = ()
    unread: str | None = None


# The archive of an exported program: what is listed, what is there, where the bytes are.
@dataclass(frozen=True, slots=True)
class StorageContent:
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
    content: StorageContent | None = None
    problem: str | None = None


@record
class ArchivePayload:
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


ArchivePayloads = Mapping[str, ArchivePayload]


@record
class ProgramArchive:
    """One program of an archive.

    ``layout`` is ``pt2`` (2.9 and later), ``pickled`` (2.7, 2.8) or ``legacy``. ``document`` is the program's JSON.
    ``weights`` and ``constants`` are by the name in the model, None when the archive does not list them: then
    ``weights_pickle`` and ``constants_pickle`` say where they are, if they are anywhere, and ``examples`` where the
    example inputs are, in a file of torch.save. ``others`` are the programs
    beside this one. ``problems`` tell what could not be read.
    """

    path: str
    member: str
    layout: str
    facts: ExportedFacts
    document: JsonObject
    weights: ArchivePayloads | None = None
    constants: ArchivePayloads | None = None
    weights_pickle: PickledState | None = None
    constants_pickle: PickledState | None = None
    has_samples: bool = True
    examples: PickledState | None = None
    others: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
