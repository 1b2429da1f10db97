"""Artifacts of torch.compile are read as torch wrote them, cut, damaged, and made to cost much; nothing is unpickled."""

from __future__ import annotations

import pickle
import random

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind, StorageContent
from aotidoctor.model.inputs import Container
from aotidoctor.readers.inputs.precompiled import read_precompiled
from aotidoctor.readers.package.package_layout import sniff
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.precompiled import CODE, NAMES, cache_of, content, flipped, mega_cache, unpack, with_checksum


def read(data, kind=None):
    kind = kind or sniff(data[:4096], len(data))[0]
    artifact = Artifact(path="m.bin", kind=kind, size=len(data))
    return read_precompiled(artifact, StorageContent(len(data), lambda at, size: data[at : at + size]))


def test_each_file_has_its_kind_and_no_damage():
    forms = {}
    for name in NAMES:
        found = read(content(name))
        assert found.damage is None, name
        assert all(one.problem is None for one in found.functions), name
        forms.setdefault(found.form, set()).add(name)
    assert forms == {
        "aot-compile": {"aot_fn", "aot_closure", "aot_dynamic", "aot_tree"},
        "aot-compile-module": {"aot_module_many"},
        "standalone-cache": {"standalone_cache"},
        "standalone-aot": {"standalone_aot"},
        "mega-cache": {"mega_cache"},
    }


def test_function_with_who_made_it_and_its_guards():
    (found,) = read(content("aot_fn")).functions
    assert (found.name, found.backend, found.device_type) == ("fn", "inductor", "cpu")
    assert (found.torch, found.python, found.triton, found.gpu) == ("2.13.0+cpu", "3.11.7", None, None)
    assert (found.threads, found.grad_mode) == (2, True)
    assert [one.name for one in found.parameters] == ["x", "y"]
    spec = found.parameters[1].tree.value
    assert (spec.dtype, [dim.static for dim in spec.dims], spec.strides, spec.device_type) == (
        "float32", [8, 4], (4, 1), "cpu",
    )  # fmt: skip
    assert found.requires_grad == {"L['x']": False, "L['y']": False}


def test_dynamic_sizes_share_symbols_as_the_guards_say():
    (found,) = read(content("aot_dynamic")).functions
    x, y = (found.parameters[at].tree.value for at in (0, 1))
    assert [dim.static for dim in (*x.dims, *y.dims)] == [None] * 4
    assert (x.dims[0].expr, x.dims[1].expr) == (y.dims[1].expr, y.dims[0].expr)
    assert x.dims[0].expr != x.dims[1].expr
    assert x.dims[0].min == 2
    assert "L['x'].size()[1]*L['x'].size()[0] <= 4096" in found.guards
    assert [(one.name, one.kind, one.default) for one in found.parameters[2:]] == [
        ("scale", 3, "2"),
        ("flag", 3, "True"),
    ]
    assert found.baked == {"L['flag']": "True"}


def test_containers_and_fixed_values_are_told_from_each_other():
    (found,) = read(content("aot_tree")).functions
    xs, d, n = (one.tree for one in found.parameters)
    assert isinstance(xs, Container)
    assert (xs.type, len(xs.children), d.type, d.keys) == ("list", 2, "dict", ("a",))
    assert (n.value.kind, found.baked["L['n']"]) == ("constant", "2.5")


def test_external_objects_are_named():
    (found,) = read(content("aot_closure")).functions
    assert found.external == ("lin",)


def test_graph_of_standalone_compile_has_its_inputs():
    for name in ("standalone_cache", "standalone_aot"):
        (found,) = read(content(name)).functions
        specs = [one.tree.value for one in found.parameters]
        assert [(spec.dtype, spec.rank, spec.device_type) for spec in specs] == [("float32", 2, "cpu")] * 2
        assert specs[0].dims[1].expr == specs[1].dims[0].expr


def test_entries_of_a_cache_are_counted_by_type():
    found = read(content("mega_cache"))
    assert [entry.type for entry in found.entries] == ["aot_autograd"] * 4 + ["inductor"]
    assert found.function is None


def test_mark_of_2_15_is_read_and_a_newer_version_is_refused():
    found = read(b"PT2AOT\x01" + content("aot_fn"))
    assert (found.magic, found.damage, found.functions[0].torch) == (True, None, "2.13.0+cpu")
    assert read(b"PT2AOT\x07" + content("aot_fn")).kind == "header"
    both = pickle.dumps([b"PT2AOT\x01" + content("aot_fn")] * 2)
    found = read(both)
    assert (found.form, found.magic, len(found.functions)) == ("aot-compile-module", True, 2)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (content("aot_fn")[:10000], "truncated"),
        (flipped(content("aot_fn"), 12000), "malformed"),
        (content("standalone_cache")[:5000], "truncated"),
        (flipped(content("standalone_cache"), 5000), "checksum"),
        (with_checksum(flipped(content("standalone_cache"), 5000)[4:]), "checksum"),
        (content("standalone_aot")[:5000], "truncated"),
        (flipped(content("standalone_aot"), 5000), "checksum"),
        (content("mega_cache")[:9000], "truncated"),
        (flipped(content("mega_cache"), 9000), "checksum"),
        (with_checksum((1).to_bytes(8, "big") + (1 << 62).to_bytes(8, "big") + b"aW5k\0"), "truncated"),
    ],
)
def test_damage_is_told(data, kind):
    found = read(data, ArtifactKind.COMPILE_CACHE if data[4:12] == (1).to_bytes(8, "big") else None)
    assert found.kind == kind
    assert found.damage


def test_empty_cache_lacks_its_entries():
    assert read(mega_cache({}), ArtifactKind.COMPILE_CACHE).missing


def test_many_empty_entries_cost_little():
    data = mega_cache({"inductor": [("k", b"")] * 20_000})
    assert len(read(data).entries) == 10_000


def test_damaged_files_are_read_to_an_end():
    rng = random.Random(7)
    for name in ("aot_fn", "aot_tree", "standalone_aot"):
        data = content(name)
        for _ in range(60):
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 6)):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            kind = ArtifactKind.COMPILED_ARTIFACT if name == "standalone_aot" else ArtifactKind.AOT_COMPILED
            found = read(bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.3 else changed), kind)
            assert found.form


# Folders and pairs.
def test_unpacked_folder_needs_both_of_its_parts(tmp_path):
    unpack(tmp_path)
    artifact = read_artifact(str(tmp_path))
    found = read_precompiled(artifact, None)
    assert (found.form, found.missing, len(found.functions)) == ("standalone-unpacked", (), 1)
    for part in sorted(tmp_path.iterdir()):
        part.rename(tmp_path.parent / f"away-{part.name}")
        found = read_precompiled(read_artifact(str(tmp_path)), None)
        assert [text.partition(":")[0] for text in found.missing] == [f"{part.name}/"]
        (tmp_path.parent / f"away-{part.name}").rename(part)


def test_folder_of_vllm_has_stale_paths_and_lost_artifacts(tmp_path):
    rank = tmp_path / "torch_aot_compile" / "ab12" / "rank_0_0"
    rank.mkdir(parents=True)
    (rank / "model").write_bytes(content("aot_fn"))
    backbone = tmp_path / "ab12" / "rank_0_0" / "backbone"
    backbone.mkdir(parents=True)
    (backbone / "artifact_a").write_bytes(content("standalone_cache"))
    index = f"""{{((1, 8192), 0, 'inductor_standalone'): ('a', '{backbone}/artifact_a'),
 ((1, 8192), 1, 'inductor_standalone'): ('b', '/root/.cache/vllm/x/artifact_b')}}"""
    (backbone / "vllm_compile_cache.py").write_text(index)
    found = read_precompiled(read_artifact(str(tmp_path)), None)
    assert (found.form, [one.torch for one in found.functions]) == ("vllm-cache", ["2.13.0+cpu"])
    assert found.stale == ("/root/.cache/vllm/x/artifact_b",)
    assert found.missing == ("ab12/rank_0_0/backbone/artifact_b",)


def test_python_file_of_precompile_states_its_call():
    found = read(CODE.encode())
    assert (found.form, found.damage) == ("precompile-code", None)
    (function,) = found.functions
    assert (function.backend, function.device_type) == ("inductor", "cpu")
    module, given = function.parameters
    assert module.tree is None
    assert (given.tree.value.dtype, [dim.static for dim in given.tree.value.dims]) == ("float32", [4, 8])
    assert function.external == ("l.weight[4, 8]", "l.bias[4]")
    assert read(CODE.replace("BACKEND", "BACKEN").encode()).kind == "malformed"


def test_cache_of_precompile_names_the_python_file_it_belongs_to(tmp_path):
    (tmp_path / "m.cache").write_bytes(cache_of(CODE, mega_cache({"inductor": [("k", b"")]})))
    path = str(tmp_path / "m.cache")
    artifact = read_artifact(path)
    data = (tmp_path / "m.cache").read_bytes()
    whole = StorageContent(len(data), lambda at, size: data[at : at + size])
    assert artifact.kind is ArtifactKind.PRECOMPILE_CACHE
    assert read_precompiled(artifact, whole).missing
    (tmp_path / "m.py").write_text(CODE)
    found = read_precompiled(artifact, whole)
    assert (found.missing, found.damage, [entry.key for entry in found.entries]) == ((), None, ["k"])
    (tmp_path / "m.py").write_text(CODE + "\n")
    assert "m.py" in read_precompiled(artifact, whole).missing[0]
