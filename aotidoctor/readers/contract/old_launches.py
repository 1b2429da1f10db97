"""Triton launches of packages before 2.7, which stand in ``run_impl`` itself.

kernels.K = loadKernel("....cubin", "K", 0, this->cubin_dir_);
CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
void* kernel_args_var_0[] = {&var_0, &var_1};
Grid K_grid_0 = Grid(2L, 1L, 1L);
if (K_grid_0.is_non_zero()) {
    launchKernel(kernels.K, K_grid_0.grid_x, K_grid_0.grid_y, K_grid_0.grid_z, 4, 0, kernel_args_var_0, stream);
}
"""

from __future__ import annotations

import re
from dataclasses import field

from aotidoctor.model.expr import Opaque, parse_expr
from aotidoctor.model.record import record
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.text import split_list

_LOAD = re.compile(r'kernels\.(\w+) = loadKernel\("([^"]*)", "[^"]*", (\d+), this->cubin_dir_\);')
_POINTER = re.compile(
    r"(?:CUdeviceptr|hipDeviceptr_t|void\*) (var_\d+) = reinterpret_cast<[\w*]+>\((\w+)\.data_ptr\(\)\);"
)
_NUMBER = re.compile(r"(?:auto|int|float|int32_t|int64_t) (var_\d+) = ([^;]+);")
_SIZE = re.compile(r"true|false|-?[\d.]+(?:e[+-]?\d+)?f?|\w+")
# A number of the CPU that a kernel takes.
_ITEM = re.compile(r"AOTI_TORCH_ERROR_CODE_CHECK\(aoti_torch_item_\w+\((\w+), &(var_\d+)\)\);")
_ARGUMENTS = re.compile(r"void\* (kernel_args_var_\d+)\[\] = \{([^{}]*)\};")
_GRID = re.compile(r"Grid (\w+) = Grid\((.*)\);")
_LAUNCH = re.compile(
    r"launchKernel\(kernels\.(\w+), (\w+)\.grid_x, \2\.grid_y, \2\.grid_z, (\d+), (\d+), (\w+), stream\);"
)
_AXES = 3


def _is_number(text: str) -> bool:
    return _SIZE.fullmatch(text) is not None or not isinstance(parse_expr(text), Opaque)


@record(kw_only=False, frozen=False)
class OldLaunches:
    """Follows the statements in order; ``launches`` has an entry per launch, as each has its own grid."""

    launches: dict[str, Launch] = field(default_factory=dict)
    _codes: dict[str, str] = field(default_factory=dict)
    _values: dict[str, str] = field(default_factory=dict)
    _arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _grids: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, text: str) -> bool:
        """Whether ``text`` is a statement that prepares a launch."""
        load = _LOAD.fullmatch(text)
        if load is not None:
            self._codes[load[1]] = load[2].rpartition("/")[2]
            return True
        value = _POINTER.fullmatch(text) or _NUMBER.fullmatch(text)
        if value is not None:
            self._values[value[1]] = value[2]
            return text.startswith(("CU", "hip", "void")) or _is_number(value[2])
        given = _ARGUMENTS.fullmatch(text)
        if given is not None:
            names = [name.removeprefix("&") for name in split_list(given[2])]
            self._arguments[given[1]] = tuple(self._values.get(name, name) for name in names)
            return all(name in self._values for name in names)
        grid = _GRID.fullmatch(text)
        if grid is None or len(split_list(grid[2])) != _AXES:
            return False
        self._grids[grid[1]] = split_list(grid[2])
        return True

    def item(self, text: str) -> None:
        """Take note of a tensor that is handed to a kernel as a number; the call itself is read as every other one."""
        taken = _ITEM.fullmatch(text)
        if taken is not None:
            self._values[taken[2]] = taken[1]

    def launch(self, text: str, line: int) -> tuple[str, tuple[str, ...]] | None:
        """The kernel's name and its arguments where ``text`` launches it; None for any other statement."""
        found = _LAUNCH.fullmatch(text)
        if found is None or not (found[1] in self._codes and found[2] in self._grids and found[5] in self._arguments):
            return None
        self.launches[f"{found[1]}@{line}"] = Launch(
            name=found[1],
            grid=self._grids[found[2]],
            warps=found[3],
            shared=found[4],
            device_code=self._codes[found[1]],
            embedded=False,
            guarded=True,
            inputs=frozenset(),
            source="",
            line=line,
        )
        return found[1], self._arguments[found[5]]
