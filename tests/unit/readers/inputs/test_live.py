"""Live values, by their attributes: no torch is needed to describe a tensor."""

import collections

from aotidoctor.readers.inputs.live_and_generated import describe_live


class Storage:
    def data_ptr(self):
        return 0x1000

    def nbytes(self):
        return 24


class Tensor:
    dtype, device, layout, requires_grad, is_quantized, shape = (
        "torch.float32",
        "cpu",
        "torch.strided",
        True,
        False,
        (2, 3),
    )

    def stride(self):
        return (3, 1)

    def storage_offset(self):
        return 0

    def untyped_storage(self):
        return Storage()

    def is_conj(self):
        return False

    def is_neg(self):
        raise RuntimeError

    def detach(self):
        return self

    def flatten(self):
        return self

    def tolist(self):
        return [0.0, 1.0, 2.0, 3.0, 4.0, float("nan")]


class Parameter(Tensor):
    layout = "torch.sparse_coo"


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024 - without types, as people write it


def test_tensor():
    (path, tensor), (_, sparse) = describe_live((Tensor(), Parameter())).tensors()
    assert (path, tensor.dtype, tensor.shape, tensor.stride) == ("args[0]", "float32", (2, 3), (3, 1))
    assert (tensor.storage, tensor.storage_nbytes, tensor.requires_grad, tensor.subclass) == ("0x1000", 24, True, None)
    assert (tensor.stats.nan, tensor.stats.high) == (1, 4.0)
    assert (sparse.subclass, sparse.layout, sparse.stride, sparse.stats) == ("Parameter", "sparse_coo", None, None)


def test_containers_and_values():
    inputs = describe_live([Point(1, [None]), collections.OrderedDict(a=2.5)], {"k": {3: "x"}, "o": object()})
    assert {path: value.type for path, value in inputs.leaves()} == {
        "args[0].x": "int",
        "args[0].y[0]": "None",
        "args[1]['a']": "float",
        "kwargs['k'][3]": "str",
        "kwargs['o']": "object",
    }
    assert inputs.form == "live"
