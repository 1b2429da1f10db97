"""The quick way's arithmetic: ranges, forms and lanes against Python that goes through the lanes one by one."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

from aotidoctor.worker.emulation.address_check import AddressCheck  # noqa: E402
from aotidoctor.worker.emulation.address_slices import Slicer, index_form, mask_bounds  # noqa: E402
from aotidoctor.worker.emulation.index_nodes import (  # noqa: E402
    IndexOverflow,
    IndexPointer,
    ProgramGrid,
    Unsliceable,
    align_rank,
    constant_node,
    number_node,
)
from aotidoctor.worker.emulation.launch import BlockSizes  # noqa: E402
from aotidoctor.worker.emulation.storage import (  # noqa: E402
    EmulatedStorage,
    PendingStep,
    PendingSteps,
    Pointer,
    device_copy,
    empty_storage,
)
from tests.optional import needs  # noqa: E402

pytestmark = pytest.mark.torch
needs_torch = needs("torch")

FLAT = "xindex = tl.program_id(0) * 8 + tl.arange(0, 8)[:]\nxmask = xindex < n\n"
REDUCED = (
    "xindex = tl.program_id(0) * 4 + tl.arange(0, 4)[:, None]\nxmask = xindex < n\n"
    "r0_index = tl.arange(0, 8)[None, :]\nr0_mask = r0_index < 5\n"
)
TILED = (
    "yindex = (tl.program_id(1) + tl.program_id(2) * tl.num_programs(1)) * 4 + tl.arange(0, 4)[:, None]\n"
    "ymask = yindex < 6\nxindex = tl.program_id(0) * 8 + tl.arange(0, 8)[None, :]\nxmask = xindex < n\n"
)


def sliced(text, grid, n=13, span=None):
    slicer = Slicer(
        grid=grid, load=None, span=lambda *_: span, pointers={"p": "fp32", "ids": "i64"},
        names={name: IndexPointer(argument=name, offset=constant_node(0)) for name in ("p", "ids")},
    )  # fmt: skip
    slicer.names["n"] = number_node(n, "i32")
    slicer.run(ast.parse(text).body)
    return slicer.accesses


def lanes(access, grid):
    """``(program, address)`` of every lane that goes somewhere."""
    whole = ProgramGrid(sizes=grid, first=0, count=grid[0] * grid[1] * grid[2])
    index = access.index.array(whole)
    rank = access.index.rank
    mask = np.ones(1, dtype=bool).reshape((1,) * (rank + 1))
    if access.mask is not None:
        rank = max(rank, access.mask.rank)
        mask = align_rank(access.mask.array(whole), access.mask.rank, rank)
    index, mask = np.broadcast_arrays(align_rank(index, access.index.rank, rank), mask)
    owners = np.broadcast_to(np.arange(whole.count).reshape((-1,) + (1,) * rank), index.shape)
    return list(zip(owners[mask].tolist(), index[mask].tolist(), strict=True))


def plain(index, n, grid, kind):
    """The same, by Python's own arithmetic, lane after lane."""
    found = []
    for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0])):
        program = x + grid[0] * (y + grid[1] * z)
        for a, b in itertools.product(range(8 if kind == "flat" else 4), range(1 if kind == "flat" else 8)):
            names = {
                "flat": {"xindex": x * 8 + a},
                "reduced": {"xindex": x * 4 + a, "r0_index": b},
                "tiled": {"yindex": (y + z * grid[1]) * 4 + a, "xindex": x * 8 + b},
            }[kind]
            if names["xindex"] < n and names.get("r0_index", 0) < 5 and names.get("yindex", 0) < 6:
                found.append((program, eval(index, {"n": n}, names)))
    return found


CASES = [
    ("flat", "xindex", (2, 1, 1), True, True),
    ("flat", "xindex + 7", (2, 1, 1), True, True),
    ("flat", "3*xindex", (2, 1, 1), True, False),
    ("flat", "(xindex % 4) + 5*(xindex // 4)", (2, 1, 1), False, False),
    ("flat", "xindex // 2", (2, 1, 1), False, False),
    ("flat", "n*xindex - 3", (2, 1, 1), True, False),
    ("reduced", "r0_index + 5*xindex", (4, 1, 1), True, True),
    ("reduced", "r0_index + 6*xindex", (4, 1, 1), True, False),
    ("reduced", "r0_index + 4*xindex", (4, 1, 1), False, False),
    ("reduced", "xindex + n*r0_index", (4, 1, 1), True, True),
    ("reduced", "xindex", (4, 1, 1), False, False),
    ("tiled", "xindex + 13*yindex", (2, 1, 2), True, True),
    ("tiled", "yindex + 6*xindex", (2, 2, 1), True, True),
    ("tiled", "xindex", (2, 1, 2), False, False),
]
MASKS = {"flat": "xmask", "reduced": "r0_mask & xmask", "tiled": "xmask & ymask"}
HEADS = {"flat": FLAT, "reduced": REDUCED, "tiled": TILED}


@pytest.mark.parametrize(("kind", "index", "grid", "exact", "whole"), CASES, ids=str)
def test_lanes_ranges_and_forms_are_those_of_the_text(kind, index, grid, exact, whole):
    (access,) = sliced(f"{HEADS[kind]}tl.store(p + ({index}), 1.0, {MASKS[kind]})", grid)
    wanted = plain(index, 13, grid, kind)
    assert sorted(lanes(access, grid)) == sorted(wanted)
    addresses = [address for _, address in wanted]
    known, nodes, complete = mask_bounds(access.mask)
    assert complete
    low, high = access.index.interval(known)
    assert low <= min(addresses) <= max(addresses) <= high
    form = index_form(access.index, known, nodes, grid)
    assert (form is not None) == exact
    if exact:
        assert (form.start, form.last) == (min(addresses), max(addresses))
        assert len(set(addresses)) == len(addresses)
        assert form.whole == whole == (set(addresses) == set(range(form.start, form.last + 1)))


def test_the_same_elements_from_each_program_have_no_form():
    """Every program of the second axis writes what the others write."""
    (access,) = sliced(f"{FLAT}tl.store(p + (xindex), 1.0, xmask)", (2, 3, 1))
    known, nodes, _ = mask_bounds(access.mask)
    assert index_form(access.index, known, nodes, (2, 3, 1)) is None


def test_what_a_kernel_computes_is_not_followed_until_an_address_needs_it():
    text = f"{FLAT}tmp0 = tl.load(p + xindex, xmask)\ntmp1 = libdevice.tanh(tmp0)\ntl.store(p + xindex, tmp1, xmask)"
    assert [one.what for one in sliced(text, (2, 1, 1))] == ["load", "store"]
    with pytest.raises(Unsliceable, match="tanh"):
        sliced(f"{text}\ntl.store(p + tmp1, tmp0, xmask)", (2, 1, 1))


@pytest.mark.parametrize(
    "text",
    [
        "while n:\n    n = n - 1",
        "if tl.load(p + 0) < 1:\n    n = 2",
        "q = tl.make_block_ptr(p, n)",
        "helper(p)",
        "for at in range(0, tl.load(p + 0)):\n    n = 1",
        "for at in range(0, 1000000):\n    n = 1",
        "tl.load(tl.where(n < 3, p, p))",
        "tl.atomic_cas(p + 0, n, n)",
        "with n:\n    pass",
    ],
)
def test_what_cannot_be_sliced_is_refused(text):
    with pytest.raises(Unsliceable):
        sliced(text, (1, 1, 1))


LOOKED_UP = (
    f"{FLAT}tmp0 = tl.load(ids + xindex, xmask)\ntmp1 = tmp0 + 40\ntmp2 = tmp0 < 0\ntmp3 = tl.where(tmp2, tmp1, tmp0)\n"
    "tl.device_assert(((0 <= tmp3) & (tmp3 < 40)) | ~(xmask), 'index out of bounds')\n"
    "tl.load(p + (xindex % 4 + 4*tmp3), xmask)"
)


@pytest.mark.parametrize(
    ("span", "holds", "reach"),
    [((0, 39), True, (0, 159)), ((-40, -1), True, (0, 159)), ((0, 40), None, (0, 163)), ((-1, 5), None, (-4, 183))],
)
def test_what_lies_in_memory_bounds_the_addresses_that_are_made_of_it(span, holds, reach):
    _, check, access = sliced(LOOKED_UP, (2, 1, 1), span=span)
    assert check.mask.truth({}) is holds
    assert access.index.interval(mask_bounds(access.mask)[0]) == reach


def test_the_remainder_of_python_is_followed():
    text = (
        f"{FLAT}tmp0 = xindex - 5\ntmp1 = tl.full([1], 4, tl.int32)\ntmp2 = tmp0 % tmp1\n"
        "tmp3 = (libdevice.signbit(tmp2) != 0) if (tmp2).dtype is tl.float32 else tmp2 < 0\n"
        "tmp4 = tl.where((tmp2 != 0) & (tmp3 != (tmp1 < 0)), tmp2 + tmp1, tmp2)\ntl.store(p + tmp4, 1.0, xmask)"
    )
    (access,) = sliced(text, (2, 1, 1))
    assert sorted(lanes(access, (2, 1, 1))) == sorted(plain("(xindex - 5) % 4", 13, (2, 1, 1), "flat"))


def test_an_assertion_that_never_holds_is_known_to():
    text = (
        "tl.device_assert(n < 5, 'no')\ntl.device_assert(~(n < 5), 'yes')\ntl.device_assert((n > 1) | (n < 5), 'yes')"
    )
    assert [one.mask.truth({}) for one in sliced(text, (1, 1, 1))] == [False, True, True]


def test_a_sum_beyond_32_bits_is_left_to_the_full_way():
    (access,) = sliced(f"{FLAT}tl.store(p + (xindex * 400000000), 1.0, xmask)", (2, 1, 1))
    assert access.index.interval(mask_bounds(access.mask)[0]) is None
    with pytest.raises(IndexOverflow):
        lanes(access, (2, 1, 1))


class Launched:
    """A launch of a text, with what the quick way asks of one; no Triton."""

    def __init__(self, body, grid, tensors, n=13):
        pytest.importorskip("torch", reason="torch is not installed")
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        text = f"def k({', '.join(tensors)}, n):\n{lines}\n"
        signature = {**dict.fromkeys(tensors, "*fp32"), "n": "i32"}
        self.kernel = SimpleNamespace(
            function=ast.parse(text).body[0], text=text, name="k", signature=signature, constants={}
        )
        self.arguments, self.grid, self.blocks = {**tensors, "n": n}, grid, {}

    def prepare(self):
        pass

    def pointers(self):
        given = {name: one for name, one in self.arguments.items() if name != "n"}
        return {
            name: Pointer(name=name, number=at, tensor=tensor, itemsize=4)
            for at, (name, tensor) in enumerate(given.items(), 1)
        }

    @property
    def sizes(self):
        return BlockSizes(kernel=self.kernel, arguments=self.arguments, launched=self.blocks)

    def here(self, line):
        return {"line": line}

    def placed(self, program, index, shape):
        return {"program": program, "lane": int(np.ravel_multi_index(index, shape)) if shape else 0}


def looked(body, grid, **tensors):
    return AddressCheck(launch=Launched(body, grid, tensors), fill=lambda storage: None).look()


def full(size):
    import torch

    return device_copy("full", torch.arange(size, dtype=torch.float32))


@needs_torch
def test_lanes_that_go_astray_are_counted_and_the_first_one_named():
    seen = looked(f"{FLAT}tl.load(p + (xindex % 4 + 4*(xindex // 4)), xmask)", (2, 1, 1), p=full(10))
    (found,) = seen.found
    assert (found["kind"], found["offset"], found["extent"], found["count"]) == ("out-of-bounds", 10, 10, 3)
    assert (found["line"], found["program"], found["lane"]) == (4, 1, 2)


@needs_torch
@pytest.mark.parametrize(
    ("body", "clashes"),
    [
        ("tl.store(p + xindex, tl.load(p + xindex, xmask), xmask)", False),
        ("tl.store(p + xindex // 2, 1.0, xmask)", False),
        ("tl.store(p + xindex % 8, 1.0, xmask)", True),
        ("tl.store(p + (15 - xindex), tl.load(p + xindex, xmask), xmask)", True),
        ("tmp0 = tl.load(p + (15 - xindex), xmask)\ntl.store(p + xindex, tmp0, xmask)", True),
        ("tl.store(p, 1.0)", True),
    ],
)
def test_programs_that_meet_are_left_to_the_full_way(body, clashes):
    seen = looked(FLAT + body, (2, 1, 1), p=full(16))
    assert (seen.unclear is not None) == clashes
    assert seen.found == []


@needs_torch
def test_the_same_index_behind_two_views_is_not_the_same_element():
    base = full(40)
    shifted = replace(base, offset=10, sizes=(30,))
    body = f"{FLAT}tmp0 = tl.load(p + xindex, xmask)\ntl.store(q + xindex, tmp0, xmask)"
    assert looked(body, (2, 1, 1), p=base, q=base).unclear is None
    assert looked(body, (2, 1, 1), p=base, q=shifted).unclear is not None


@needs_torch
def test_what_nothing_has_written_is_told_though_it_is_written_later():
    fresh = empty_storage("fresh", "float32", (13,), (1,))
    body = f"{FLAT}tmp0 = tl.load(p + (xindex % 4 + 4*(xindex // 4)), xmask)\ntl.store(p + xindex, tmp0, xmask)"
    (found,) = looked(body, (2, 1, 1), p=fresh).found
    assert (found["kind"], found["count"]) == ("uninitialized", 13)
    assert fresh.has_unwritten() == 0


@needs_torch
def test_only_what_is_stored_counts_as_written():
    fresh = empty_storage("fresh", "float32", (13, 2), (2, 1))
    assert looked(f"{FLAT}tl.store(p + 2*xindex, 1.0, xmask)", (2, 1, 1), p=fresh).found == []
    assert fresh.has_unwritten() == 13


def steps(*plan):
    """Steps that note when they are carried out, and storages by name; ``plan`` has reads and writes of each."""
    storages = {name: EmulatedStorage(name, 4, 4, written=True) for name in "abcdef"}
    done = []
    pending = PendingSteps()
    for at, (reads, writes) in enumerate(plan):
        pending.add(
            PendingStep(
                carry_out=lambda at=at: done.append(at),
                reads=tuple(storages[one] for one in reads),
                writes=tuple(storages[one] for one in writes),
            )
        )
    return pending, storages, done


@needs_torch
def test_only_what_a_value_follows_from_is_carried_out():
    pending, storages, done = steps(("a", "b"), ("a", "c"), ("b", "d"))
    pending.fill([storages["d"]])
    assert done == [0, 2]
    assert pending.is_left_out(storages["c"])
    assert not pending.is_left_out(storages["b"])


@needs_torch
def test_what_reads_a_value_goes_before_what_overwrites_it():
    pending, storages, done = steps(("b", "c"), ("a", "b"), ("b", "d"))
    pending.fill([storages["d"]])
    assert done == [0, 1, 2]


@needs_torch
def test_both_writers_of_a_buffer_are_carried_out_in_order():
    pending, storages, done = steps(("a", "b"), ("c", "b"), ("e", "f"))
    pending.fill([storages["b"]])
    assert done == [0, 1]


GROUPED = """pid = tl.program_id(0)
group = 2 * tl.cdiv(n, 8)
size = min(tl.cdiv(n, 4) - pid // group * 2, 2)
rows = (pid // group * 2 + pid % group % size) * 4 + tl.arange(0, 4)
cols = tl.max_contiguous(tl.multiple_of(pid % group // size * 8 + tl.arange(0, 8), 8), 8)
at = p + (rows[:, None] * n + cols[None, :])
for k in range(0, tl.cdiv(n, 8)):
    tl.load(at, mask=(rows[:, None] < n) & (cols[None, :] < n - k * 8))
    at += 8
if 'relu' == 'relu':
    tl.store(p + (pid * 8 + tl.arange(0, 16 // 2)), 1.0)
"""


def test_programs_in_groups_and_loops_over_numbers_are_followed():
    first, second, last = sliced(GROUPED, (8, 1, 1))
    seen = sorted(at for _, at in lanes(first, (8, 1, 1)))
    assert seen == sorted(row * 13 + col for row in range(13) for col in range(13))
    assert sorted(at for _, at in lanes(second, (8, 1, 1))) == sorted(
        row * 13 + col for row in range(13) for col in range(8, 13)
    )
    assert [at for program, at in lanes(last, (8, 1, 1)) if program == 0] == list(range(8))
