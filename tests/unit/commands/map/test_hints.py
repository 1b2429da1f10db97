"""What is worth a look on a map, from records alone: each note where it belongs, and none where it does not."""

from __future__ import annotations

import pytest

from aotidoctor.commands.map.hints import find_hints
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host
from aotidoctor.model.localization import BufferValues
from aotidoctor.model.package_map import CallTime, MapBuffer, MapCall, MapRun, MemoryPeak, PackageMap

CASE = Case(
    artifact=Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1),
    host=Host(system="Linux", machine="x86_64", python="3.11", cores=8),
)


def call(index, name="cpp_fused_relu_0", kind="cpp", seconds=None, **more):
    time = None if seconds is None else CallTime(seconds=seconds, low=seconds, high=seconds, runs=9)
    return MapCall(index=index, name=name, kind=kind, time=time, **more)


def drawn(*calls, **more):
    total = sum(one.time.seconds for one in calls if one.time is not None)
    shared = tuple(
        one if one.time is None else MapCall(**{**fields(one), "time": CallTime(**{**fields(one.time), "share": one.time.seconds / total})})
        for one in calls
    )  # fmt: skip
    return PackageMap(package="m.pt2", model_name="model", device="cpu", calls=shared, **more)


def fields(value):
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def kinds(found):
    return [hint.kind for hint in find_hints(CASE, found)]


def test_the_hot_call_is_named_with_its_share_and_why():
    found = find_hints(
        CASE, drawn(call(0, seconds=1e-3), call(1, "aoti_torch_cpu_cumsum", "extern", seconds=3e-3, moved=3000))
    )
    assert [hint.kind for hint in found] == ["hot-call", "fallback"]
    assert found[0].calls == (1,)
    assert found[0].text == "aoti_torch_cpu_cumsum takes 75% of the time (3 ms, 976.6 KiB/s): fallback"


def test_calls_of_libraries_are_no_fallback_and_equal_calls_are_not_hot():
    names = ("mm_out", "addmm_out", "bmm_out", "convolution", "mkldnn__convolution_pointwise", "_scaled_mm_out")
    assert kinds(drawn(*(call(at, f"aoti_torch_cpu_{name}", "extern", 1e-3) for at, name in enumerate(names)))) == []
    assert kinds(drawn(call(0, "zoo::scale", "custom"))) == ["fallback"]


@pytest.mark.parametrize(("operators", "is_copy"), [(("aten.clone", "aten.permute"), True), (("aten.clone", "aten.mul"), False), (("aten.permute",), False)])  # fmt: skip
def test_a_copy_right_before_a_product(operators, is_copy):
    buffers = tuple(MapBuffer(name=name, label=name, role="activation") for name in ("buf0", "buf1"))
    calls = (
        call(0, operators=operators, writes=("buf0",)),
        call(1, "aoti_torch_cpu_mm_out", "extern", reads=("buf0",), writes=("buf1",)),
    )
    assert (kinds(drawn(*calls, buffers=buffers)) == ["copy-before-product"]) is is_copy


def test_a_weight_that_is_laid_out_anew_in_every_call():
    weight = MapBuffer(name="w", label="w", role="weight", shape=("8", "4", "3", "3"))
    buffers = (weight, MapBuffer(name="buf0", label="buf0", role="temporary", shape=("8", "4", "3", "3")))
    calls = (
        call(0, reads=("w",), writes=("buf0",), operators=("aten.relu", "aten.convolution")),
        call(1, "aoti_torch_cpu_convolution", "extern", reads=("buf0",)),
    )
    assert kinds(drawn(*calls, buffers=buffers)) == ["copy-before-product"]


def test_many_tiny_calls_and_few():
    assert kinds(drawn(*(call(at, seconds=1e-6) for at in range(9)))) == ["tiny-calls"]
    assert kinds(drawn(*(call(at, seconds=1e-6) for at in range(5)))) == []
    assert kinds(drawn(*(call(at, seconds=1e-4) for at in range(9)))) == []


def test_one_thread_of_many_cores():
    calls = [call(at, seconds=1e-4) for at in range(6)]
    assert kinds(drawn(*calls, run=MapRun(runs=5, threads=1))) == ["one-thread"]
    assert kinds(drawn(*calls, run=MapRun(runs=5, threads=8))) == []


def test_a_first_call_that_pays_for_what_is_done_once():
    calls = [call(at, seconds=1e-4) for at in range(6)]
    assert kinds(drawn(*calls, run=MapRun(runs=5, seconds=6e-4, first=0.1))) == ["first-call"]
    assert kinds(drawn(*calls, run=MapRun(runs=5, seconds=6e-4, first=1e-3))) == []


def test_memory_that_operators_take_in_between():
    calls = (call(0, "aoti_torch_cpu_convolution", "extern"), call(1))
    assert kinds(drawn(*calls, peak=MemoryPeak(call=0, bytes=1000, allocated=2000))) == ["operator-memory"]
    assert kinds(drawn(*calls, peak=MemoryPeak(call=0, bytes=1000, allocated=1010))) == []
    assert kinds(drawn(*calls, peak=MemoryPeak(call=0, bytes=1000, allocated=2000, unknown=("buf1",)))) == []


def test_the_first_call_that_writes_nan():
    bad = BufferValues(name="buf0", role="out", dtype="float32", shape=(4,), nan=2, inf=1)
    found = find_hints(CASE, drawn(call(0), call(1, values=(bad,)), call(2, values=(bad,))))
    assert [(hint.kind, hint.calls) for hint in found] == [("not-finite", (1,))]
    assert "3 elements" in found[0].text
