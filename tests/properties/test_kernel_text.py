"""Damaged and hostile kernels: whatever the text, following it ends, and names nothing that it cannot prove."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.kernels import kernel_flow
from aotidoctor.kernels.kernel_expressions import ExpressionReader
from aotidoctor.kernels.value_trees import Variable
from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.blame.failing_elements import Failure
from tests.unit.localize.kernels import case_of, floats, integers, text

IDS = (1, 5, 9, 100, 0, 42, 17, 3)
KERNEL = text("provenance.kernel")
WRAPPER = text("provenance.wrapper")
SHIFTED = text("shifted_index.kernel")
FAILURE = Failure(kind="index", kernel="cpp_fused__softmax_embedding_mul_0", variable="tmp2", bound="100L")


def ask(**sources):
    case = case_of("provenance", floats(8, 16), kwargs={"ids": integers(*IDS)}, **sources)
    chain = chain_of(case, FAILURE)
    # The only element that is out of any bound that this text can have.
    assert chain is None or all(element.path == "kwargs['ids']" for element in chain.elements)
    return chain


def damaged(data, whole, signs='0[](){}<>,;"*/ x9&|~?:.='):
    for _ in range(data.draw(st.integers(1, 25))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole = whole[:place] + data.draw(st.sampled_from(signs)) + whole[place + 1 :]
    return whole


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_characters_changed(data):
    ask(kernel=damaged(data, KERNEL))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_characters_of_the_calls_changed(data):
    start = WRAPPER.index("inputs.clear();")
    ask(wrapper=WRAPPER[:start] + damaged(data, WRAPPER[start:]))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 150), min_size=1, max_size=20), st.data())
def test_lines_lost_and_doubled(places, data):
    lines = SHIFTED.split("\n")
    for place in places:
        at = place % len(lines)
        if data.draw(st.booleans()):
            lines[at] = ""
        else:
            lines.insert(at, lines[at])
    for check in kernel_flow.follow_cpp("\n".join(lines), 1, frozenset(("in_ptr0", "in_ptr1", "in_ptr2"))).checks:
        assert check.variable.startswith("tmp")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="tmp0x1(){}[]<>,.:;=+-*/%&|!?~\"' \n", max_size=120))
def test_any_text(text):
    reader = ExpressionReader(Variable, frozenset(("tmp0",)))
    assert reader.value(text).size > 0
    kernel_flow.follow_cpp(text, 1, frozenset())
    kernel_flow.follow_triton(text, 1, frozenset())


@pytest.mark.parametrize(
    "line",
    [
        "auto tmp1 = " + "(" * 3000 + "tmp0" + ")" * 3000 + ";",
        "auto tmp1 = " + "-" * 3000 + "tmp0;",
        "auto tmp1 = " + "tmp0 + " * 500 + "tmp0;",
        "auto tmp1 = " + "9" * 3000 + ";",
        "\n".join(f"auto tmp{at + 1} = tmp{at} + tmp{at};" for at in range(200)),
        "}" * 100,
        "{\n" * 500,
    ],
)
def test_hostile_growth(line):
    before, after = KERNEL.split("auto tmp1 = tmp0;", 1)
    ask(kernel=before + line + after)
    assert isinstance(kernel_flow.follow_cpp(line, 1, frozenset()), object)
