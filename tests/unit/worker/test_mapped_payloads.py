"""Weights that are mapped from the archive of an exported program are those that torch would have copied."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch.testing._internal.two_tensor import TwoTensor

from aotidoctor.worker.verify.cut_program import load_program


class Zoo(torch.nn.Module):
    """Tied, shared, strided, empty, without dims, of many dtypes, a subclass, and a buffer that is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 6)
        self.tied = torch.nn.Linear(6, 6)
        self.tied.weight = self.first.weight
        self.frozen = torch.nn.Parameter(torch.randn(3, 6).t(), requires_grad=False)
        self.pair = torch.nn.Parameter(TwoTensor(torch.ones(2, 2), torch.zeros(2, 2)))
        whole = torch.arange(24.0)
        self.register_buffer("head", whole[:6])
        self.register_buffer("tail", whole[6:18].view(3, 4)[:, 1:3])
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("nothing", torch.empty(0, 4))
        for dtype in (torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.int8, torch.bool):
            self.register_buffer(f"of_{str(dtype).rpartition('.')[2]}", torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype))
        self.constant = torch.full((5,), 7.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return self.tied(self.first(x)) * self.head + self.constant[:1] + self.frozen[:, 0]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("zoo") / "zoo.pt2"
    torch.export.save(torch.export.export(Zoo(), (torch.ones(2, 6),)), str(made))
    return made


def held(program: torch.export.ExportedProgram) -> dict[str, torch.Tensor]:
    return {**program.state_dict, **program.constants}


def is_mapped(tensor: torch.Tensor, path: Path) -> bool:
    """Whether the values lie in a mapping of the file."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if low <= tensor.data_ptr() < high:
            return line.endswith(str(path))
    return False


def test_they_are_the_same_as_torch_has_them(path: Path) -> None:
    ours, theirs = held(load_program(path)), held(torch.export.load(str(path)))
    assert list(ours) == list(theirs)
    for name, one in ours.items():
        other = theirs[name]
        assert (type(one), one.dtype, one.shape, one.stride()) == (
            type(other),
            other.dtype,
            other.shape,
            other.stride(),
        )
        assert (one.storage_offset(), one.requires_grad) == (other.storage_offset(), other.requires_grad)
        if not isinstance(one, TwoTensor):
            assert one.untyped_storage().tolist() == other.untyped_storage().tolist(), name


def test_what_shares_memory_does_so_still(path: Path) -> None:
    ours = held(load_program(path))
    assert ours["first.weight"].data_ptr() == ours["tied.weight"].data_ptr()
    assert ours["tail"].data_ptr() - ours["head"].data_ptr() == (6 + 1) * 4


def test_plain_storages_are_mapped_and_no_others(path: Path) -> None:
    ours = held(load_program(path))
    own = {name for name, one in ours.items() if not is_mapped(one, path)}
    assert own == {"pair", "nothing"}


def test_what_the_program_writes_is_not_written_to_the_file(path: Path) -> None:
    before = path.read_bytes()
    program = load_program(path)
    program.module()(torch.ones(2, 6))
    with torch.no_grad():
        program.state_dict["first.weight"].zero_()
    assert program.state_dict["count"].item() == 4
    assert path.read_bytes() == before
    assert held(load_program(path))["first.weight"].abs().sum() > 0


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_member_that_is_compressed_or_misaligned_is_left_to_torch(path: Path, tmp_path: Path, method: int) -> None:
    packed = tmp_path / "packed.pt2"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", method) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    ours, theirs = held(load_program(packed)), held(load_program(path))
    copied = {name for name, one in ours.items() if not is_mapped(one, packed)}
    assert copied == set(ours) if method == zipfile.ZIP_DEFLATED else copied > {"pair", "nothing"}
    for name in copied - {"pair"}:
        assert ours[name].reshape(-1).tolist() == theirs[name].reshape(-1).tolist()
