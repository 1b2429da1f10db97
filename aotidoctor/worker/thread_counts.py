"""Call the model some times with its threads and some times with one, and compare.

Part of the result: ``against_threads`` with ``threads`` (the two counts), ``repeatable`` (are the calls with each count
equal to one another) and what ``compare`` tells of one thread against several.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.answers.called import ThreadsCompared
from aotidoctor.worker.call import Call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compare import compare, compared_leaf
from aotidoctor.worker.describe import digest
from aotidoctor.worker.leaves import copied, rebuild_result, result_tensors
from aotidoctor.worker.load import LoadedModel

CALLS = 3


def compare_threads(model: LoadedModel, call: Call, threads: int, channel: Channel) -> None:
    """Do it; ``threads`` is the other count."""
    import torch

    saved = call.copy()
    counts = [torch.get_num_threads(), threads]
    firsts: list[Any] = []
    bits: list[Any] = []
    repeatable: list[bool] = []
    for count in counts:
        torch.set_num_threads(count)
        digests = []
        for number in range(CALLS):
            channel.enter(f"run{CALLS * len(repeatable) + number + 1}")
            result = model(*call.args, **call.kwargs)
            channel.enter("scan")
            digests.append([digest(leaf) for _, leaf in result_tensors(result)])
            if number == 0:
                # A copy: another call may use the same memory.
                firsts.append(rebuild_result(result, copied))
            if saved is not None:
                call.restore(saved)
        bits.append(digests[0])
        repeatable.append(all(one == digests[0] for one in digests))
    compared = compare(firsts[1], firsts[0])
    channel.put(
        against_threads=ThreadsCompared(
            threads=tuple(counts),
            repeatable=tuple(repeatable),
            same=bits[0] == bits[1],
            agrees=compared["agrees"],
            outputs=tuple(map(compared_leaf, compared["outputs"])),
        )
    )
