"""Describe config.pbtxt as written, without the server's defaults, and the tensors of a package by Triton's names.

``ConfigMessage`` is the text as a tree, each field with its place. ``ModelConfig`` holds the fields that rules ask for,
by name and type. MODEL_INIT_LIBRARY names a library that the server loads and calls before it loads the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Generic, TypeVar

from aotidoctor.model.contract import Dim
from aotidoctor.model.record import record

# config.pbtxt.

T = TypeVar("T")


@record
class Position:
    """A place in config.pbtxt; both count from 1."""

    line: int
    column: int


TOP = Position(line=1, column=1)


@record
class Given(Generic[T]):
    """A value of the config and where it is written."""

    value: T
    at: Position


def written_text(given: Given[str] | None) -> str:
    """The text of a value; empty where there is none."""
    return "" if given is None else given.value


@record
class ConfigField:
    """One field as written, without quotes. Each element of ``dims: [ 1, 2 ]`` is a field of its own, at its place."""

    name: str
    value: Given[str] | ConfigMessage
    at: Position


@record
class ConfigMessage:
    """A message: its fields in the order of the text. ``at`` is the place of the name that opens it."""

    fields: tuple[ConfigField, ...]
    at: Position

    def all(self, name: str) -> tuple[ConfigField, ...]:
        """The fields called ``name``."""
        return tuple(item for item in self.fields if item.name == name)

    def first(self, name: str) -> ConfigField | None:
        """The first field called ``name``, None where there is none."""
        return next((item for item in self.fields if item.name == name), None)

    def messages(self, name: str) -> tuple[ConfigMessage, ...]:
        """The messages called ``name``."""
        return tuple(item.value for item in self.all(name) if isinstance(item.value, ConfigMessage))

    def message(self, name: str) -> ConfigMessage | None:
        """The first message called ``name``, None where there is none."""
        return next(iter(self.messages(name)), None)


@record
class TensorConfig:
    """One ``input`` or ``output``. ``data_type`` is the enumerator (``TYPE_FP32``), also where a number is written.

    ``dims`` and ``reshape`` leave out the batch dimension where ``max_batch_size`` is above 0; ``reshape`` is None
    where there is none. ``optional`` and ``ragged`` are None where not written.
    """

    at: Position
    name: Given[str] | None = None
    data_type: Given[str] | None = None
    dims: tuple[Given[int], ...] = ()
    reshape: tuple[Given[int], ...] | None = None
    optional: Given[bool] | None = None
    ragged: Given[bool] | None = None
    tree: ConfigMessage

    @property
    def shape(self) -> tuple[Given[int], ...]:
        """The shape that the backend sees: the dims of the reshape, which the server applies, else ``dims``."""
        return self.dims if self.reshape is None else self.reshape

    @property
    def label(self) -> str:
        """The name, or ``(no name)``."""
        return self.name.value if self.name is not None else "(no name)"

    @property
    def type(self) -> str:
        """The enumerator of its type; ``TYPE_INVALID`` where none is written, as the server reads it."""
        return "TYPE_INVALID" if self.data_type is None else self.data_type.value

    @property
    def type_at(self) -> Position:
        """The place of its type, else of the tensor."""
        return (self.data_type or self).at

    @property
    def name_at(self) -> Position:
        """The place of its name, else of the tensor."""
        return (self.name or self).at


@record
class InstanceGroup:
    """One ``instance_group``. ``kind`` is the enumerator; None where not written (the server reads ``KIND_AUTO``)."""

    at: Position
    name: str | None = None
    kind: Given[str] | None = None
    count: Given[int] | None = None
    gpus: tuple[Given[int], ...] = ()
    profile: tuple[Given[str], ...] = ()
    tree: ConfigMessage

    @property
    def effective_kind(self) -> str:
        """The kind as the server reads it."""
        return "KIND_AUTO" if self.kind is None else self.kind.value

    @property
    def kind_at(self) -> Position:
        """The place of its kind, else of the group."""
        return (self.kind or self).at

    @property
    def instances(self) -> int:
        """The number of instances it makes, at least one."""
        return 1 if self.count is None else max(1, self.count.value)


@record
class ParameterConfig:
    """One entry of ``parameters``; ``value`` is its ``string_value``, None where it has none."""

    at: Position
    key: Given[str]
    value: Given[str] | None = None

    @property
    def value_at(self) -> Position:
        """The place of its value, else of the entry."""
        return (self.value or self).at


@record
class ControlConfig:
    """A control tensor of ``sequence_batching``. ``kinds`` like ``CONTROL_SEQUENCE_START``."""

    at: Position
    name: Given[str] | None = None
    kinds: tuple[str, ...] = ()
    data_type: Given[str] | None = None


@record
class StateConfig:
    """A state of ``sequence_batching``: the tensor that comes in and the one that goes out."""

    at: Position
    input_name: Given[str] | None = None
    output_name: Given[str] | None = None
    data_type: Given[str] | None = None
    dims: tuple[Given[int], ...] = ()


@record
class ModelConfig:
    """config.pbtxt as written, before the server's defaults. What is not written is None or empty.

    ``scheduling`` is the field of the scheduling choice: ``dynamic_batching``, ``sequence_batching`` or
    ``ensemble_scheduling``. ``parameters`` has one entry for each key. ``comments`` are the texts after ``#``, with
    their places.
    """

    tree: ConfigMessage
    name: Given[str] | None = None
    platform: Given[str] | None = None
    backend: Given[str] | None = None
    default_model_filename: Given[str] | None = None
    max_batch_size: Given[int] | None = None
    inputs: tuple[TensorConfig, ...] = ()
    outputs: tuple[TensorConfig, ...] = ()
    instance_groups: tuple[InstanceGroup, ...] = ()
    parameters: tuple[ParameterConfig, ...] = ()
    scheduling: ConfigField | None = None
    controls: tuple[ControlConfig, ...] = ()
    states: tuple[StateConfig, ...] = ()
    batch_inputs: tuple[ConfigMessage, ...] = ()
    batch_outputs: tuple[ConfigMessage, ...] = ()
    warmups: tuple[ConfigMessage, ...] = ()
    cc_model_filenames: Mapping[str, str] = field(default_factory=dict)
    comments: tuple[Given[str], ...] = ()

    @property
    def batch_size(self) -> int:
        """``max_batch_size``; 0 where not written."""
        return 0 if self.max_batch_size is None else self.max_batch_size.value

    def parameter(self, key: str) -> ParameterConfig | None:
        """The parameter with this key, None where there is none."""
        return next((item for item in self.parameters if item.key.value == key), None)

    @property
    def batch_at(self) -> Position:
        """The place of ``max_batch_size``, else the top."""
        return TOP if self.max_batch_size is None else self.max_batch_size.at


# The init library of a model.
PARAMETER = "MODEL_INIT_LIBRARY"
INIT_FUNCTION = "triton_pytorch_model_init"
RELEASE = "triton_pytorch_model_release"
# What the release function was called before the feature was merged.
OLD_RELEASE = "triton_pytorch_model_fini"
SYMBOL_PART = "triton_pytorch_model_"


@record
class HookLibrary:
    """The init library on this host.

    ``path`` is as the config has it; ``target`` is where it leads when a link is on the way, else None. ``format``,
    ``machine``, ``bits`` and ``type`` are those of the file. ``symbols`` are the functions it exports whose names hold
    ``triton_pytorch_model_``, mangled ones included, and ``hidden`` those that it has and does not export.
    ``libraries`` maps everything that it needs, directly or not, to a file (None when not found). ``writable`` are the
    paths, of file and folder, that others than their owner may write to. ``problem`` says why it could not be read.
    """

    path: str
    exists: bool
    target: str | None = None
    format: str | None = None
    machine: str | None = None
    bits: int | None = None
    type: str | None = None
    symbols: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    libraries: Mapping[str, str | None] = field(default_factory=dict)
    writable: tuple[str, ...] = ()
    problem: str | None = None


# Tensors of a package by the names that Triton gives them.
@record
class NameRow:
    """One input or output under the names of a release.

    ``slot`` is its place in what is given to the compiled code, ``ordinal`` the name by that place (``INPUT__1``).
    ``forward`` is the name by its place in the call (``ARGS[1][a]``), None where the release has no such names.
    ``path`` is the user's. ``kind`` is ``tensor``, ``unknown`` (no telling what the package takes it for), or, of what
    the server takes for a tensor and is none: ``value`` (a number or None baked in at export), ``empty`` (an empty
    dict), ``nested`` (a container inside a keyword); of outputs, ``number``, ``none`` and ``shifted`` (an empty dict or
    after one: the name answers with another output).

    ``data_type`` is Triton's (``TYPE_FP32``), None where it has none for ``dtype`` or that is not known. ``lost`` marks
    a row whose names do not reach it, since a later row has the same.
    """

    slot: int
    ordinal: str
    forward: str | None
    path: str
    kind: str = "tensor"
    dtype: str | None = None
    data_type: str | None = None
    dims: tuple[Dim, ...] | None = None
    device_type: str | None = None
    generated_name: str | None = None
    used: bool | None = None
    lost: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the server takes for it, the one that all releases take first; none where it is lost."""
        if self.lost:
            return ()
        return (self.ordinal,) if self.forward is None else (self.ordinal, self.forward)

    @property
    def may_be_tensor(self) -> bool:
        """Whether it is a tensor, as far as the package tells."""
        return self.kind in ("tensor", "unknown")

    @property
    def label(self) -> str:
        """``INPUT__1 (kwargs['mask'])``."""
        return f"{self.ordinal} ({self.path})"


@record
class Obstacle:
    """A reason why no config can serve the package.

    ``rule`` is the id of the rule that reports it, ``kind`` its variant, ``letter`` the consequence (``F``, ``E``,
    ``S``). ``path`` is the user's path of the place, ``observed`` what is there. ``message`` says what the server does,
    ``remedy`` what to do instead.
    """

    rule: str
    kind: str
    letter: str
    path: str
    observed: str
    expected: str
    message: str
    remedy: str


@record
class NameTable:
    """All tensors of a package under their names in one release. ``wanted`` is how many inputs the compiled code takes.

    ``read`` tells whether the rows are what the release makes of the package: not where it cannot parse the call spec.
    """

    release: str
    inputs: tuple[NameRow, ...]
    outputs: tuple[NameRow, ...]
    obstacles: tuple[Obstacle, ...] = ()
    wanted: int = 0
    read: bool = True

    @property
    def servable(self) -> bool:
        """Whether some config can serve the package."""
        return not self.obstacles
