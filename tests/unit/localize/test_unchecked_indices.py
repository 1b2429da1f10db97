"""Kernels that were compiled without checks of indices: recorded ones, with the checks taken out."""

from __future__ import annotations

import re

import pytest

from aotidoctor.localize.blame.indirect_failures import unchecked_chain
from aotidoctor.model.localization import Element
from tests.unit.localize.kernels import case_of, floats, integers, text

IDS = (1, 5, 9, 99, 0, 42, 17, 3)
CHECK = re.compile(r"^.*index out of bounds: .*\n", re.MULTILINE)


def bare(name):
    """The kernel without the statements that check."""
    kernel = text(f"{name}.kernel")
    assert CHECK.search(kernel) is not None
    return CHECK.sub("", kernel)


def sentence(ids, **changes):
    return case_of("provenance", floats(8, 16), kwargs={"ids": integers(*ids)}, **changes)


def test_what_lies_inside_of_the_table_is_fine():
    assert unchecked_chain(sentence(IDS, kernel=bare("provenance"))) is None


@pytest.mark.parametrize("value", [100, -1, 1 << 50])
def test_the_element_that_reads_beyond_it_is_named(value):
    failure, chain = unchecked_chain(sentence((*IDS[:3], value, *IDS[4:]), kernel=bare("provenance")))
    assert (failure.kind, chain.index, chain.bound) == ("index", value, 100)
    assert chain.elements == (Element(path="kwargs['ids']", index=(3,), value=value),)
    assert chain.origin == "inner.e.weight.shape[0]"


def test_code_that_checks_its_indices_is_not_asked():
    assert unchecked_chain(sentence((*IDS[:3], 100, *IDS[4:]))) is None


def test_only_what_is_read_counts():
    """The kernel takes the first of each pair; the second may be anything."""
    kernel = bare("provenance")
    shape = re.compile(r"in_ptr\d\[static_cast<int64_t>\((x0)\)\]")
    assert shape.search(kernel) is not None
    halved = shape.sub(lambda found: found[0].replace("(x0)", "(2L*x0)"), kernel)
    pairs = tuple(value for one in IDS for value in (one, 100_000))
    assert unchecked_chain(sentence(pairs, kernel=halved)) is None
    assert unchecked_chain(sentence(pairs[1:] + pairs[:1], kernel=halved)) is not None


def test_a_kernel_that_reads_on_a_condition_is_left_alone():
    kernel = bare("provenance")
    guarded = kernel.replace("auto tmp0 =", "auto tmp90 = tmp91 ? tmp92() : 0;\nauto tmp0 =", 1)
    assert guarded != kernel
    assert unchecked_chain(sentence((*IDS[:3], 100, *IDS[4:]), kernel=guarded)) is None
