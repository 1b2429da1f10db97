"""Make the small files in ``tests/data/inputs`` with the torch that is installed: ``python tests/data/make_inputs.py``."""

import collections
import pickle
import zipfile
from pathlib import Path

import torch

HERE = Path(__file__).with_name("inputs")


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


def retagged(name, old, new):
    """A copy of ``old`` whose pickle says ``cuda:0`` where it said ``cpu``."""
    out = HERE / name
    with zipfile.ZipFile(HERE / old) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            if info.filename.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00" + new)
            target.writestr(info.filename, data)


def main():
    HERE.mkdir(exist_ok=True)
    x = torch.arange(12.0).reshape(3, 4)
    bad = x.clone()
    bad[1, 2], bad[2, 0] = float("nan"), float("inf")
    parameter = torch.nn.Parameter(x.clone())
    z = torch.complex(torch.ones(2, 2), torch.full((2, 2), 2.0))
    objects = {
        "args": (x, torch.tensor([1, 0, 2])),
        "list": [x, x + 1],
        "pair": ((x,), {"scale": x}),
        "args_kwargs": {"args": (x,), "kwargs": {"scale": x}},
        "kwargs": {"x": x, "scale": x},
        "one": x,
        "tree": (x, {"a": x, "b": [x, None]}, collections.OrderedDict(z=1)),
        "parameter": (parameter, x.clone().requires_grad_()),
        "conj_neg": (z.conj(), torch._neg_view(x + 1)),
        "expanded": (x[:1].expand(5, 4),),
        "sliced": (x[1:, 1::2],),
        "shared": (x, x.t()),
        "meta": (torch.empty(3, 4, device="meta"),),
        "sparse_coo": (torch.eye(3).to_sparse(),),
        "sparse_csr": (torch.eye(3).to_sparse_csr(),),
        "quantized": (torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),),
        "nested": (torch.nested.nested_tensor([x, x[:2]]),),
        "dtypes": tuple(
            torch.tensor([0.0, 1.0, 2.0]).to(getattr(torch, name))
            for name in ("bfloat16", "float16", "float8_e4m3fn", "uint16", "bool", "int8", "float64", "complex64")
        ),
        "scalars": (torch.tensor(2.5), torch.empty(0, 3)),
        "nonfinite": (bad,),
        "plain": (1, 2.5, True, None, "text", torch.float16, torch.device("cuda", 1), torch.Size([1, 2]), 1j),
        "state_dict": torch.nn.Sequential(torch.nn.Linear(2, 2)).state_dict(),
        "module": torch.nn.Linear(2, 2),
        "subclass": (Wrapped(x),),
    }
    for name, value in objects.items():
        torch.save(value, HERE / f"{name}.pt")
    torch.save((x, x.t()), HERE / "legacy.pt", _use_new_zipfile_serialization=False)
    for protocol in (2, 5):
        (HERE / f"plain{protocol}.pkl").write_bytes(pickle.dumps((x, {"a": x}), protocol=protocol))
    torch.save((x,), HERE / "protocol4.pt", pickle_protocol=4)
    retagged("cuda.pt", "one.pt", b"cuda:0")


if __name__ == "__main__":
    main()
