"""Pickles that would run code, exhaust memory or never end."""

import collections
import io
import os
import pickle
import struct
import zipfile

import pytest

from aotidoctor.model.errors import InputsError
from aotidoctor.readers.inputs.pickle_machine import load_pickle
from aotidoctor.readers.inputs.read_inputs import read_inputs


class Runs:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def as_zip(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


def refused(tmp_path, data, **options):
    path = tmp_path / "sample.pt"
    path.write_bytes(data)
    with pytest.raises(InputsError) as caught:
        read_inputs(str(path), **options)
    return caught.value


@pytest.mark.parametrize("wrap", [as_zip, bytes], ids=["zip", "plain"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_code_is_named_and_not_run(tmp_path, wrap, protocol):
    victim = tmp_path / "victim"
    command = Runs(os.system, f"touch {victim}")
    more = Runs(eval, f"open({str(victim)!r}, 'w')")
    error = refused(tmp_path, wrap(pickle.dumps([command, more], protocol=protocol)))
    assert error.cause == "inputs-file-unsafe"
    assert error.subject.endswith(".system, builtins.eval")
    assert not victim.exists()


def test_trusted_code_is_not_run_here_either(tmp_path):
    victim = tmp_path / "victim"
    path = tmp_path / "sample.pt"
    path.write_bytes(as_zip(pickle.dumps((Runs(os.system, f"touch {victim}"),))))
    inputs = read_inputs(str(path), trust_pickle=True)
    assert inputs.globals == ("posix.system",)
    assert not victim.exists()


def test_unsafe_wins_over_damaged(tmp_path):
    error = refused(tmp_path, as_zip(b"cos\nsystem\n(S'true'\ntRgarbage"))
    assert (error.cause, error.subject) == ("inputs-file-unsafe", "os.system")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x80\x02ctorch\nload\n.", "torch.load"),
        (b"\x80\x04\x8c\x05torch\x8c\x0ehub.load.x.y.z\x93.", "torch.hub.load.x.y.z"),
        (b"\x80\x02(ios\nsystem\n.", "os.system"),
        (b"\x80\x02\x82\x07.", "copyreg.extension_7"),
        (b"\x80\x02c__builtin__\ngetattr\n.", "builtins.getattr"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\ncbuiltins\nexec\n0.", "builtins.exec"),
    ],
)
def test_every_way_to_name_a_global(tmp_path, data, name):
    error = refused(tmp_path, as_zip(data))
    assert (error.cause, error.subject) == ("inputs-file-unsafe", name)


def test_many_globals_are_listed_to_a_limit(tmp_path):
    data = b"\x80\x02" + b"".join(b"cmodule\nname%d\n" % index for index in range(1000)) + b"."
    error = refused(tmp_path, as_zip(data))
    assert error.cause == "inputs-file-unsafe"
    assert len(error.subject) < 1000


HOSTILE = {
    "memo index": b"\x80\x02Nr\xff\xff\xff\x7f0j\x00\x00\x00\x01.",
    "huge text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
    "huge bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".",
    "huge long": b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
    "long of digits": b"L" + b"9" * 100_000 + b"L\n.",
    "no stop": b"\x80\x02(N" * 10,
    "endless marks": b"(" * 200_000,
    "empty stack": b"\x80\x02R.",
    "append to a number": b"\x80\x02K\x01K\x02a.",
    "call of a text": b"\x80\x02X\x01\x00\x00\x00a)R.",
    "buffer": b"\x80\x05\x97.",
    "not utf-8": b"\x80\x02X\x02\x00\x00\x00\xff\xfe.",
    "too many opcodes": b"\x80\x02" + b"N0" * 600_000 + b"N.",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_damaged_and_exhausting_pickles(tmp_path, data):
    assert refused(tmp_path, as_zip(data)).cause == "inputs-file-corrupt"


def test_deep_nesting(tmp_path):
    for depth in (200, 100_000):
        error = refused(tmp_path, as_zip(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."))
        assert error.cause == "inputs-file-corrupt"
        assert "100 levels" in str(error)


def test_list_that_holds_itself(tmp_path):
    assert "100 levels" in str(refused(tmp_path, as_zip(b"\x80\x02]q\x00h\x00a.")))


def test_lists_that_double(tmp_path):
    data = b"\x80\x02]q\x00" + b"".join(b"]q%c(h%ch%ce" % (index + 1, index, index) for index in range(60)) + b"."
    assert "50000 parts" in str(refused(tmp_path, as_zip(data)))


def test_numbers_in_lists_where_a_tensor_belongs_are_no_damage(tmp_path):
    data = b"\x80\x02](" + b"K\x01" * 60_000 + b"e."
    assert refused(tmp_path, as_zip(data)).cause == "inputs-file-format"


PICTURE = [[[0.5] * 200 for _ in range(200)] for _ in range(3)]


@pytest.mark.parametrize(
    "value",
    [
        (PICTURE, 1),
        [PICTURE, 1],
        {"args": (PICTURE, 1)},
        ((PICTURE, 1), {}),
        {"args": (), "kwargs": {"x": PICTURE, "y": 1}},
    ],
    ids=["tuple", "list", "mapping", "pair", "keywords"],
)
def test_a_picture_given_as_lists_is_one_leaf(tmp_path, value):
    path = tmp_path / "sample.pt"
    path.write_bytes(as_zip(pickle.dumps(value)))
    picture, one = (leaf for _, leaf in read_inputs(str(path)).leaves())
    assert (picture.type, picture.text) == ("list", "lists of 3 x 200 x 200 numbers")
    assert one.type == "int"


def test_lists_of_numbers_that_double_are_one_leaf_too(tmp_path):
    data = (
        b"\x80\x02(]q\x00K\x01a" + b"".join(b"]q%c(h%ch%ce" % (index + 1, index, index) for index in range(60)) + b"t."
    )
    path = tmp_path / "sample.pt"
    path.write_bytes(as_zip(data))
    assert "50000 parts" in str(refused(tmp_path, as_zip(data.replace(b"K\x01", b"N"))))
    path.write_bytes(as_zip(data))
    assert read_inputs(str(path)).leaves()[-1][1].type == "list"


def test_colliding_keys_are_read(tmp_path):
    """How long it takes, ``tests/bench/test_hostile.py`` asks."""
    keys = b"".join(b"\x8a\x0a" + (index * ((1 << 61) - 1)).to_bytes(10, "little") + b"N" for index in range(20_000))
    path = tmp_path / "sample.pt"
    path.write_bytes(as_zip(b"\x80\x02}(" + keys + b"u."))
    inputs = read_inputs(str(path))
    assert inputs.form == "args"


def tensor_pickle(size=b"K\x03", stride=b"K\x01", offset=b"K\x00", count=b"K\x03"):
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + count + b"tQ" + offset + size + b"\x85" + stride + b"\x85"
        b"\x89ccollections\nOrderedDict\n)RtR\x85."
    )


def with_record(data, record):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        if record is not None:
            archive.writestr("archive/data/0", record)
    return out.getvalue()


def test_the_tensor_pickle_itself_is_good(tmp_path):
    path = tmp_path / "sample.pt"
    path.write_bytes(with_record(tensor_pickle(), bytes(12)))
    ((_, tensor),) = read_inputs(str(path)).tensors()
    assert (tensor.shape, tensor.stats.zeros) == ((3,), 3)


@pytest.mark.parametrize(
    ("pickled", "record", "subject"),
    [
        ({"size": b"K\x04"}, bytes(12), "0"),
        ({"stride": b"K\x02"}, bytes(12), "0"),
        ({"offset": b"K\x01"}, bytes(12), "0"),
        ({}, bytes(8), "archive/data/0"),
        ({}, None, "archive/data/0"),
        ({"size": b"J\xff\xff\xff\xff"}, bytes(12), "archive/data.pkl"),
        ({"offset": b"J\xff\xff\xff\xff"}, bytes(12), "archive/data.pkl"),
        ({"size": b"X\x01\x00\x00\x00a"}, bytes(12), "archive/data.pkl"),
        ({"count": b"\x8a\x09" + bytes(8) + b"\x01"}, bytes(12), "archive/data.pkl"),
    ],
)
def test_tensors_outside_their_storage(tmp_path, pickled, record, subject):
    error = refused(tmp_path, with_record(tensor_pickle(**pickled), record))
    assert (error.cause, error.subject) == ("inputs-file-corrupt", subject)


def test_expanded_to_astronomic_size_is_not_walked(tmp_path):
    path = tmp_path / "sample.pt"
    data = tensor_pickle(size=b"\x8a\x07" + (1 << 50).to_bytes(7, "little"), stride=b"K\x00")
    path.write_bytes(with_record(data, bytes(12)))
    ((_, tensor),) = read_inputs(str(path)).tensors()
    assert (tensor.numel, tensor.stats) == (1 << 50, None)


def test_machine_reads_what_pickle_writes():
    value = {"a": [1, -(1 << 70), 2.5, "é\n", b"x", None, True], "b": (), "c": (1, 2, 3, 4), "d": {1}}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded = load_pickle(pickle.dumps(value, protocol=protocol))
        assert loaded.problem is None
        keys = [key for key, _ in loaded.value.entries]
        assert keys == list(value)
        assert loaded.value.entries[0][1].items[:4] == value["a"][:4]
        assert loaded.value.entries[2][1] == (1, 2, 3, 4)


def test_ordered_dicts(tmp_path):
    path = tmp_path / "sample.pkl"
    path.write_bytes(pickle.dumps((collections.OrderedDict(b=1, a=2), collections.defaultdict(list, c=3)), protocol=2))
    first, second = read_inputs(str(path)).args.children
    assert (first.type, first.keys) == ("ordereddict", ("b", "a"))
    assert (second.type, second.keys) == ("defaultdict", ("c",))
