"""Vectors and numbers that the compiler wrote into the code, read back from trees of choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.readers.contract.written_constants import constant_numbers, constant_vectors


class Kernel:
    """Writes statements as Inductor does: one variable for each value, and equal ones shared."""

    def __init__(self):
        self.lines = ["auto tmp0 = x0_tail;", "auto tmp1 = c10::convert<int64_t>(tmp0);"]
        self.names = {}

    def say(self, text):
        if text not in self.names:
            self.names[text] = f"tmp{len(self.names) + 2}"
            self.lines.append(f"    auto {self.names[text]} = {text};")
        return self.names[text]

    def choose(self, values, start, end, kind="float"):
        if end - start == 1:
            return self.say(f"static_cast<{kind}>({values[start]!r})")
        middle = (end - start) // 2 + start
        under = self.say(f"tmp1 < {self.say(f'static_cast<int64_t>({middle})')}")
        left = self.choose(values, start, middle, kind)
        right = self.choose(values, middle, end, kind)
        return self.say(f"{under} ? {left} : {right}")


VALUES = (-0.1983768343925476, 0.015229791402816772, 1e-05, 0.0, 0.0, -3.5e20, 7.0, 0.25)


def kernel(*all_values, kind="float"):
    made = []
    for values in all_values:
        one = Kernel()
        one.choose(values, 0, len(values), kind)
        made += ["{", *one.lines, "}"]
    return "\n".join(made)


@pytest.mark.parametrize("count", range(2, 9))
@pytest.mark.parametrize("kind", ["float", "double", "at::BFloat16"])
def test_a_vector_of_each_length(count, kind):
    assert constant_vectors(kernel(VALUES[:count], kind=kind)) == [VALUES[:count]]


def test_vectors_in_the_order_of_the_code_as_often_as_they_are_there():
    zeros = (0.0,) * 8
    assert constant_vectors(kernel(zeros, VALUES[:4], zeros)) == [zeros, VALUES[:4], zeros]


def test_a_choice_by_something_else_is_no_vector():
    masked = (
        "auto tmp1 = static_cast<float>(2.0);\nauto tmp2 = static_cast<float>(0.0);\nauto tmp4 = tmp3 ? tmp1 : tmp2;"
    )
    assert constant_vectors(masked) == []
    beyond = "auto tmp5 = static_cast<int64_t>(7);\nauto tmp6 = tmp0 < tmp5;\nauto tmp8 = static_cast<float>(2.0);\n"
    assert constant_vectors(f"{beyond}auto tmp9 = tmp6 ? tmp8 : tmp8;") == []
    # Of a vector that is one side of a mask, the vector is left.
    inside = kernel(VALUES[:4]).rsplit("}", 1)[0]
    last = inside.rstrip().rsplit("auto ", 1)[1].split(" ", 1)[0]
    text = f"{inside}auto tmp90 = static_cast<int64_t>(9);\nauto tmp91 = tmp0 < tmp90;\nauto tmp92 = tmp91 ? {last} : {last};"
    assert constant_vectors(text) == [VALUES[:4]]


def test_numbers_that_nobody_typed_come_first():
    text = "auto tmp1 = static_cast<float>(256.0);\nauto tmp2 = static_cast<float>(-0.07542473077774048);\n"
    text += "auto tmp3 = static_cast<int64_t>(12345678901);\nauto tmp4 = tmp2 * static_cast<float>(256.0);"
    assert constant_numbers(text) == [-0.07542473077774048, 256.0]


def test_a_long_line_costs_no_time():
    assert constant_vectors("auto tmp1 = " + "tmp2 ? " * 100_000) == []
    assert constant_numbers("static_cast<float>(" + "1" * 500_000) == []


def test_a_vector_in_registers_as_torch_213_writes_it_for_avx2():
    text = (Path(__file__).parents[3] / "data" / "kernels" / "bias_avx2.cpp").read_text(encoding="utf-8")
    bias = (
        -0.150535449385643, -0.10086914151906967, 0.1554020494222641, -0.15618222951889038, -0.013819108717143536,
        0.1903790831565857, 0.06952010095119476, 0.0054488470777869225,
    )  # fmt: skip
    assert constant_vectors(text) == [bias]
