"""From the pickle of a torch file, or a plain one, to its content."""

from __future__ import annotations

from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.describe import Describer
from aotidoctor.readers.inputs.not_inputs import other_pickle
from aotidoctor.readers.inputs.opcodes import Loaded
from aotidoctor.readers.inputs.problems import corrupt, unsafe, wrong_format
from aotidoctor.readers.inputs.storage import MalformedError, TooManyPartsError
from aotidoctor.readers.inputs.tensors import Reader


def pickle_content(path: str, loaded: Loaded, reader: Reader, *, member: str, format_: str, trusted: bool) -> Content:
    """The content of one pickle. ``member`` names the record of the pickle, for errors. Raises ``InputsError``."""
    what = None if loaded.problem else other_pickle(loaded.value)
    if what is not None and what.startswith("a pickled model"):
        raise wrong_format(path, what)
    if loaded.foreign and not trusted:
        raise unsafe(path, loaded.foreign)
    if loaded.problem is not None:
        raise corrupt(path, member, f"a damaged pickle ({loaded.problem})", "a complete pickle")
    if what is not None:
        raise wrong_format(path, what)
    try:
        tree = Describer(reader).call_of(loaded.value)
    except TooManyPartsError as error:
        raise wrong_format(path, error.observed) from error
    except MalformedError as error:
        raise corrupt(path, error.subject or member, error.observed, error.expected) from error
    return Content(tree=tree, format=format_, foreign=loaded.foreign)
