"""Damaged and hostile wrappers: whatever the text, reading it ends with a contract or with None."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.model.artifact import Artifact, ArtifactKind, ModelEntry
from aotidoctor.model.contract import ModelContract
from aotidoctor.readers.contract.read_contract import read_contract

DATA = Path(__file__).parents[1] / "data" / "wrappers"
NAMES = ("derived", "nested", "consts_mid", "cuda_sort", "customop", "mutate", "scatter")
TEXTS = {name: (DATA / f"{name}.wrapper.cpp").read_text(encoding="utf-8") for name in NAMES}
KERNEL = (DATA / "scatter.kernel.cpp").read_text(encoding="utf-8")


def read(text, kernel=KERNEL):
    entry = ModelEntry(
        name="m", layout="pt2", members=(), wrapper_member="w", wrapper_cpp=text, kernel_sources={"k": kernel}
    )
    artifact = Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, models=(entry,))
    return read_contract(artifact, entry)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_lines_lost_and_doubled(name, data):
    lines = TEXTS[name].split("\n")
    places = data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=40))
    for place in places:
        if data.draw(st.booleans()):
            lines[place] = ""
        else:
            lines.insert(place, lines[place])
    contract = read("\n".join(lines))
    assert contract is None or isinstance(contract, ModelContract)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_characters_changed_and_the_end_cut(name, data):
    text = TEXTS[name]
    for _ in range(data.draw(st.integers(1, 20))):
        place = data.draw(st.integers(0, len(text) - 1))
        text = text[:place] + data.draw(st.sampled_from('0[](){}<>,;"*/ x9')) + text[place + 1 :]
    text = text[: data.draw(st.integers(len(text) // 2, len(text)))]
    contract = read(text, text)
    assert contract is None or isinstance(contract, ModelContract)


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_any_text(text):
    assert read(text, text) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (4 != arg0_1_size[1])", f"if ({'9' * 5000} != arg0_1_size[1])"),
        ("if (4 != arg0_1_size[1])", "if (4 != arg0_1_size[99999999999])"),
        (
            "int64_t s77 = arg0_1_size[0];",
            "int64_t s77 = arg0_1_size[0];\n" + "\n".join(f"int64_t s{i} = s{i - 1}*s{i - 1};" for i in range(78, 140)),
        ),
        ("assert_size_stride(arg0_1, {s77, 4L}", "assert_size_stride(arg0_1, {" + "(" * 3000 + "s77, 4L}"),
        ("AOTInductorModelBase(3,", "AOTInductorModelBase(999999,"),
    ],
)
def test_hostile_numbers_and_growth(old, new):
    assert old in TEXTS["derived"]
    contract = read(TEXTS["derived"].replace(old, new))
    assert isinstance(contract, ModelContract)
    assert len(contract.leaves) == 3
