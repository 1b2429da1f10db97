"""Reductions and scans with a function of the kernel's, for Triton's interpreter: whole slices at a time."""

from __future__ import annotations

from typing import Any


def patch_reductions(interpreter: Any) -> None:
    """A reduction with a function of the kernel's goes by halves, a scan by doubling steps: whole slices at a time."""
    import numpy as np

    def call(self: Any, left: Any, right: Any, like: Any) -> list[Any]:
        wrapped = [self.to_tensor(data, one.dtype) for data, one in zip((*left, *right), (*like, *like), strict=True)]
        made = self.combine_fn.rewrite()(*wrapped)
        made = made if isinstance(made, tuple | list) or hasattr(made, "values") else (made,)
        return [
            np.broadcast_to(one.handle.data, a.shape).astype(a.dtype, copy=False)
            for one, a in zip(made, left, strict=True)
        ]

    def generic_reduce(self: Any, given: Any) -> Any:
        original_axis = self.axis
        tensors, axis = self.unravel(given, self.axis)
        data = [np.moveaxis(one.handle.data, axis, 0) for one in tensors]
        rank = len(given[0].handle.data.shape)
        while len(data[0]) > 1:
            half = len(data[0]) // 2
            odd = [one[2 * half :] for one in data]
            data = call(self, [one[:half] for one in data], [one[half : 2 * half] for one in data], tensors)
            if len(odd[0]):
                data = [np.concatenate([one, last]) for one, last in zip(data, odd, strict=True)]
        made = []
        for one, like in zip(data, tensors, strict=True):
            result = one[0]
            if self.keep_dims:
                result = np.expand_dims(result, axis) if original_axis is not None else result.reshape((1,) * rank)
            elif original_axis is None:
                result = result.item()
            made.append(self.to_tensor(result, like.dtype))
        return made

    def generic_scan(self: Any, given: Any) -> Any:
        data = [np.moveaxis(one.handle.data, self.axis, 0).copy() for one in given]
        step = 1
        while step < len(data[0]):
            made = call(self, [one[:-step] for one in data], [one[step:] for one in data], given)
            data = [np.concatenate([one[:step], new]) for one, new in zip(data, made, strict=True)]
            step *= 2
        return [
            self.to_tensor(np.ascontiguousarray(np.moveaxis(one, 0, self.axis)), like.dtype)
            for one, like in zip(data, given, strict=True)
        ]

    interpreter.ReduceOps.generic_reduce = generic_reduce
    interpreter.ScanOps.generic_scan = generic_scan
