"""The worker makes the call that the parent described, from the same file."""

import io
import json
import pickle
from pathlib import Path

import pytest

from aotidoctor.model.jobs import InputsSource

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from aotidoctor.model.contract import Dim, LeafSpec, ModelContract  # noqa: E402
from aotidoctor.model.inputs import Container, Leaf  # noqa: E402
from aotidoctor.readers.inputs.live_and_generated import describe_live, generate_inputs  # noqa: E402
from aotidoctor.readers.inputs.read_inputs import read_inputs  # noqa: E402
from aotidoctor.worker.safe_load import load_inputs  # noqa: E402

pytestmark = pytest.mark.torch

DATA = Path(__file__).parents[2] / "data" / "inputs"
GOOD = [
    path.name for path in sorted(DATA.iterdir())
    if path.stem not in ("state_dict", "module", "subclass", "nested", "plain", "meta", "cuda")
]  # fmt: skip
FIELDS = ("dtype", "shape", "stride", "storage_offset", "device", "requires_grad", "conj", "neg", "layout", "subclass")


def both(path, **spec):
    inputs = read_inputs(str(path))
    args, kwargs = load_inputs(InputsSource(path=str(path), plan=inputs.plan, **spec))
    return inputs, describe_live(args, kwargs)


def assert_same(inputs, live):
    assert [path for path, _ in inputs.leaves()] == [path for path, _ in live.leaves()]
    for (path, read), (_, made) in zip(inputs.tensors(), live.tensors(), strict=True):
        assert {name: getattr(read, name) for name in FIELDS} == {name: getattr(made, name) for name in FIELDS}, path
        if read.stats is not None and made.stats is not None:
            assert read.stats == made.stats


@pytest.mark.parametrize("name", GOOD)
def test_files_of_torch(name):
    inputs, live = both(DATA / name)
    assert_same(inputs, live)


class Cache:
    """A class that no reader without its code can look into."""

    def __init__(self, tensor):
        self.tensor = tensor


@pytest.mark.parametrize("zipped", [True, False])
def test_trusted_file_with_an_object_among_tensors(tmp_path, zipped):
    path = tmp_path / "sample.pt"
    first, inner = torch.arange(6.0).reshape(2, 3), torch.ones(4)
    torch.save((first, Cache(inner)), path, _use_new_zipfile_serialization=zipped)
    inputs = read_inputs(str(path), trust_pickle=True)
    assert [type_ for _, type_ in ((path, getattr(value, "type", None)) for path, value in inputs.leaves())] == [
        None,
        "Cache",
    ]
    assert inputs.tensors()[0][1].stats.high == 5.0


def test_made_tensors_of_one_repeated_row(tmp_path):
    path = tmp_path / "sample.json"
    spec = {"dtype": "float32", "shape": [4, 2], "stride": [0, 1], "data": [[1, 2]] * 4}
    path.write_text(json.dumps([{"tensor": spec}, {"tensor": {**spec, "data": None}}]))
    (first, second), _ = load_inputs(InputsSource(path=str(path), plan=read_inputs(str(path)).plan))
    assert first.stride() == second.stride() == (0, 1)
    assert first.tolist() == [[1, 2]] * 4
    assert second.unique().numel() == 2


def test_plan_is_not_needed_without_call_spec():
    args, kwargs = load_inputs(InputsSource(path=str(DATA / "pair.pt")))
    assert (len(args), list(kwargs)) == (1, ["scale"])


def test_cuda_file_on_a_host_without_cuda():
    if torch.cuda.is_available():
        pytest.skip("this host has CUDA")
    inputs, live = both(DATA / "cuda.pt")
    assert inputs.tensors()[0][1].device == "cuda:0"
    assert live.tensors()[0][1].device == "cpu"


def test_shared_memory_stays_shared():
    args, _ = load_inputs(InputsSource(path=str(DATA / "shared.pt")))
    args[0][0, 1] = 99
    assert args[1][1, 0] == 99


def test_arrays(tmp_path):
    path = tmp_path / "a.npz"
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez(path, fortran, np.array([1, 2], dtype=">i4"), mask=np.array([True]), name=np.array(["x"]))
    inputs, live = both(path)
    assert_same(inputs, live)
    assert live.tensors()[0][1].stride == (1, 2)


def test_array_in_a_torch_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save((np.arange(3), torch.ones(2)), path)
    inputs, live = both(path)
    assert inputs.leaves()[0][1].type == "ndarray"
    assert_same(inputs, live)


def test_safetensors(tmp_path):
    library = pytest.importorskip("safetensors.torch")
    path = tmp_path / "a.safetensors"
    library.save_file(
        {"args.1": torch.ones(2, dtype=torch.bfloat16), "args.0": torch.arange(3), "kwargs.e": torch.empty(0, 2)}, path
    )
    inputs, live = both(path)
    assert_same(inputs, live)
    assert [tensor.dtype for _, tensor in live.tensors()] == ["int64", "bfloat16", "float32"]


def test_json(tmp_path):
    path = tmp_path / "a.json"
    spec = {"dtype": "float64", "shape": [2, 3], "stride": [1, 2], "low": 5, "high": 6}
    document = {"args": [[[1, 2]], {"tensor": spec}, {"tuple": [1, None]}], "kwargs": {"m": [True], "d": {"a": [0.5]}}}
    path.write_text(json.dumps(document))
    inputs, live = both(path)
    assert_same(inputs, live)
    stats = live.tensors()[1][1].stats
    assert 5 <= stats.low <= stats.high <= 6


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8", "bool", "complex64", "float8_e4m3fn"])
def test_generated_inputs_are_made_alike_twice(dtype):
    leaf = LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0, dtype=dtype, dims=(Dim(static=64),))
    contract = ModelContract(
        model_name="m", source="wrapper.cpp", leaves=(leaf,), n_inputs=1,
        args=Container(type="tuple", children=(Leaf(value=0),)), kwargs=Container(type="dict", children=()),
    )  # fmt: skip
    inputs, document = generate_inputs(contract, seed=1)
    (first,), _ = load_inputs(InputsSource(document=document))
    (again,), _ = load_inputs(InputsSource(document=json.loads(json.dumps(document))))
    assert torch.equal(
        first.view(torch.uint8) if dtype != "bool" else first, again.view(torch.uint8) if dtype != "bool" else again
    )
    assert_same(inputs, describe_live((first,), {}))
    if dtype in ("int64", "uint8", "bool"):
        assert sorted({int(value) for value in first}) == [0, 1]


class Runs:
    def __reduce__(self):
        return Path.touch, (Path("/nonexistent/never"),)


@pytest.mark.parametrize(
    "save", [torch.save, pickle.dump, lambda value, out: torch.save(value, out, pickle_protocol=4)]
)
def test_code_is_refused_here_too(tmp_path, save):
    out = io.BytesIO()
    save((Runs(),), out)
    path = tmp_path / "a.pt"
    path.write_bytes(out.getvalue())
    with pytest.raises(pickle.UnpicklingError):
        load_inputs(InputsSource(path=str(path)))
    with pytest.raises(FileNotFoundError):
        load_inputs(InputsSource(path=str(path), trusted=True))
