"""Why the server's answer is another than the plain call's: the rules that explain a difference."""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.model.json_types import JsonObject, objects
from aotidoctor.model.record import record
from aotidoctor.model.serving import Release
from aotidoctor.triton.names import NAMES_SINCE
from aotidoctor.triton.rehearsal import Rehearsal, Wire
from aotidoctor.triton.rehearsal_words import crossing, number, rename, sizes
from aotidoctor.triton.releases import SPLITS_SINCE


@record
class Why:
    """A rule with what it says of the case at hand; empty where it is no rule's."""

    kind: str
    words: str
    rule: str = ""
    remedy: str = ""
    wire: Wire | None = None


@record
class Reasons:
    """What can be said of one rehearsal. ``result`` is the child's JSON."""

    plan: Rehearsal
    release: Release
    result: JsonObject

    @property
    def requests(self) -> int:
        """How many requests were put together: fewer than planned where a batch has no room for them."""
        return number(self.result.get("merged")) or self.plan.requests

    def merging(self, wire: Wire, answer: JsonObject) -> Iterator[Why]:
        """Requests that were put together and are not taken apart again."""
        if self.requests == 1 or self.plan.splits:
            return
        words = ""
        if answer.get("what") == "beyond":
            words = (
                f"it gets {answer.get('bytes')} bytes from beyond the end of the buffer: heap, or other clients' data"
            )
        elif number(answer.get("foreign")):
            words = f"{number(answer.get('foreign'))} rows of it belong to a different client's request"
        if words:
            remedy = f"no dynamic_batching before Triton {SPLITS_SINCE}"
            yield Why(rule="R34", kind="merged", words=words, remedy=remedy, wire=wire)

    def all(self, output: Wire | None) -> Iterator[Why]:
        """What differs between what is meant and what the server does, the likeliest cause first."""
        rule = "R26" if self.release.before(NAMES_SINCE) else "R27"
        if output is not None and output.crossed:
            yield Why(
                rule=rule,
                kind="swapped",
                words=crossing([output], "answers with"),
                remedy=rename(output),
                wire=output,
            )
        crossed = [wire for wire in self.plan.inputs if wire.crossed]
        if crossed:
            remedy = "; ".join(map(rename, crossed))
            yield Why(rule=rule, kind="swapped", words=crossing(crossed, "goes into"), remedy=remedy, wire=crossed[0])
        for wire in self.plan.inputs:
            if wire.row.dtype is not None and wire.row.dtype != wire.dtype:
                words = f"{wire.name} is sent as {wire.dtype}, and its bytes are read as {wire.row.dtype}"
                words += self._beyond(wire)
                remedy = f"data_type: {wire.row.data_type or wire.row.dtype}"
                yield Why(rule="R19", kind="retyped", words=words, remedy=remedy, wire=wire)
        yield from self._compiled_sizes()

    def _compiled_sizes(self) -> Iterator[Why]:
        sent = {str(item.get("name")): sizes(item.get("shape")) for item in objects(self.result.get("sent"))}
        for wire in self.plan.inputs:
            shape = sent.get(wire.name, ())
            for at, dim in enumerate(wire.row.dims or ()):
                if dim.static is not None and at < len(shape) and shape[at] != dim.static:
                    batch = bool(self.plan.max_batch) and at == 0
                    words = f"{wire.name} has {shape[at]} in dim {at}, the code was compiled for {dim.static}"
                    words += self._beyond(wire)
                    remedy = "compile it with a dynamic batch" if batch else "dims as compiled"
                    kind, rule = ("static-batch", "R31") if batch else ("sizes", "R21")
                    yield Why(rule=rule, kind=kind, words=words, remedy=remedy, wire=wire)

    def _beyond(self, wire: Wire) -> str:
        for item in objects(self.result.get("padded")):
            if item.get("name") == wire.name:
                return f", {item.get('bytes')} of them beyond what was sent (zeros here; anything in a server)"
        return ""
