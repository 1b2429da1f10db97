"""The check functions: what the compiled code compares of each input when its checks are switched on.

``check_input_<i>`` (2.8 and later) and the single ``__check_inputs_outputs`` of 2.7 have the same lines; each names its
input by a local variable, so the lines are read without regard to the function they stand in.
"""

from __future__ import annotations

import re
from dataclasses import field

from aotidoctor.model.c10 import DEVICE_TYPES
from aotidoctor.model.record import record
from aotidoctor.readers.contract.constructor import dtype_name
from aotidoctor.readers.contract.losses import Losses
from aotidoctor.readers.contract.text import Section

_COMPARE = re.compile(r"if \((-?\d{1,19}) != (\w+)_(size|stride)\[(\d{1,3})\]\) \{$")
_BOUND = re.compile(r"if \((\w+)_size\[(\d{1,3})\] ([<>]) (-?\d{1,19})\) \{$")
_HANDLE = re.compile(r"(?:ConstantHandle|auto) (\w+) = (?:ConstantHandle\()?(input|output)_handles\[(\d{1,6})\]\)?;$")
_DTYPE = re.compile(r"int32_t (\w+)_expected_dtype = (aoti_torch_dtype_\w+)\(\);$")
_DEVICE = re.compile(r"int32_t (\w+)_expected_device_type = (\d{1,6});$")
_PLAIN = re.compile(
    r"(?:$|[{}]|\) \{|std::stringstream |ss <<|<< |throw |AOTI_TORCH_ERROR_CODE_CHECK\(|AOTI_NOINLINE |static |Aten|"
    r"void |"
    r"const static |return|if \(!_check_aoti|if \(\w+_expected_\w+ != |auto \w+_(?:size|stride) = |int32_t \w+;|"
    r"check_input_\d+\(|namespace |//|/\*|template|inputs_|output_handles)"
)


@record(kw_only=False, frozen=False)
class InputCheck:
    """What is compared of one input. Keys of ``static``, ``low``, ``high`` and ``strides`` are dim numbers."""

    index: int | None = None
    line: int | None = None
    dtype: str | None = None
    device_type: str | None = None
    static: dict[int, int] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    high: dict[int, int] = field(default_factory=dict)
    strides: dict[int, int] = field(default_factory=dict)

    @property
    def dims_seen(self) -> int:
        """One more than the highest dim that any comparison mentions."""
        return 1 + max((dim for table in (self.static, self.low, self.high, self.strides) for dim in table), default=-1)


@record
class Checks:
    """All checks by the generated name of the input, and the statements that fit no rule."""

    inputs: dict[str, InputCheck]
    losses: Losses

    @property
    def has_lower_bounds(self) -> bool:
        """Whether lower bounds were compiled in at all: then every dim of every input has a comparison."""
        return any(check.low for check in self.inputs.values())


def parse_checks(section: Section) -> Checks:
    """Read all check functions."""
    inputs: dict[str, InputCheck] = {}
    outputs: set[str] = set()
    losses = Losses("checks")
    for offset, raw in enumerate(section.text.split("\n")):
        line = raw.strip()
        if _PLAIN.match(line) is not None:
            continue
        handle = _HANDLE.match(line)
        if handle is not None and handle[2] == "output":
            outputs.add(handle[1])
        elif handle is not None:
            check = inputs.setdefault(handle[1], InputCheck())
            check.index, check.line = int(handle[3]), section.line + offset
        elif not _read_line(line, inputs):
            losses.note("input-check", section.line + offset, line)
    kept = {name: check for name, check in inputs.items() if name not in outputs}
    return Checks(inputs=kept, losses=losses)


def _read_line(line: str, inputs: dict[str, InputCheck]) -> bool:
    """Read one comparison into ``inputs``; False when it is none that is known."""
    found = _COMPARE.match(line)
    if found is not None:
        check = inputs.setdefault(found[2], InputCheck())
        table = check.static if found[3] == "size" else check.strides
        table[int(found[4])] = int(found[1])
        return True
    found = _BOUND.match(line)
    if found is not None:
        check = inputs.setdefault(found[1], InputCheck())
        table = check.low if found[3] == "<" else check.high
        table[int(found[2])] = int(found[4])
        return True
    found = _DTYPE.match(line)
    if found is not None:
        check = inputs.setdefault(found[1], InputCheck())
        check.dtype = dtype_name(found[2])
        return check.dtype is not None
    found = _DEVICE.match(line)
    if found is not None:
        check = inputs.setdefault(found[1], InputCheck())
        check.device_type = DEVICE_TYPES.get(int(found[2]))
        return check.device_type is not None
    return False
