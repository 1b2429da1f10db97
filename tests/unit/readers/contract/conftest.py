"""Contracts of recorded wrappers (tests/data/wrappers: the beginning that is the same everywhere is cut off)."""

from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, Member, Metadata, ModelEntry
from aotidoctor.readers.contract.read_contract import read_contract

DATA = Path(__file__).parents[3] / "data" / "wrappers"
FOLDER = "m/data/aotinductor/model/"


def recorded(name: str, kind: str = "wrapper") -> str:
    return (DATA / f"{name}.{kind}.cpp").read_text(encoding="utf-8")


def member(name: str, size: int = 1) -> Member:
    return Member(name=FOLDER + name, size=size, compressed_size=size, crc=CrcState.GOOD, data_offset=0, path="m.pt2")


def entry_of(wrapper: str | None, kernel: str | None = None, **changes) -> ModelEntry:
    entry = ModelEntry(
        name="model",
        layout="pt2",
        members=(),
        wrapper_member=FOLDER + "a.wrapper.cpp",
        wrapper_cpp=wrapper,
        kernel_sources={} if kernel is None else {FOLDER + "b.kernel.cpp": kernel},
        metadata=(Metadata(member=FOLDER + "a.wrapper_metadata.json", values={"AOTI_DEVICE_KEY": "cpu"}),),
    )
    return replace(entry, **changes)


def artifact_of(entry: ModelEntry, **changes) -> Artifact:
    return replace(Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, models=(entry,)), **changes)


@pytest.fixture
def contract_of():
    """``contract_of("div8")``: the contract of a recorded wrapper, with its recorded kernels if there are any."""

    def read(name, kernels=None, **changes):
        path = DATA / f"{kernels or name}.kernel.cpp"
        kernel = path.read_text(encoding="utf-8") if path.exists() else None
        entry = entry_of(recorded(name), kernel, **changes)
        return read_contract(artifact_of(entry), entry)

    return read


@pytest.fixture
def contract_from():
    """``contract_from(text)``: the contract of a wrapper given as text."""

    def read(wrapper, kernel=None, **changes):
        entry = entry_of(wrapper, kernel, **changes)
        return read_contract(artifact_of(entry), entry)

    return read


@pytest.fixture
def recorded_text():
    return recorded


@pytest.fixture
def make_member():
    return member


@pytest.fixture
def make_entry():
    return entry_of


@pytest.fixture
def make_artifact():
    return artifact_of
