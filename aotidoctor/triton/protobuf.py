"""The last word on whether config.pbtxt parses: protobuf's text format with Triton's own schema, where installed.

The schema is a module of ``tritonclient``, loaded from its file: to import its package would ask for grpcio.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.record import record
from aotidoctor.model.serving_config import Position

if TYPE_CHECKING:
    from google.protobuf.message import Message

INSTALL = "pip install 'aotidoctor[triton]'"
_SCHEMA = Path("grpc", "model_config_pb2.py")


@record
class Verdict:
    """``accepted`` is None where protobuf or the schema is missing; ``problem`` says why it is not True."""

    accepted: bool | None
    problem: str = ""
    at: Position | None = None


def judge(text: str) -> Verdict:
    """Whether the server would take the text as a config."""
    try:
        from google.protobuf import text_format  # noqa: PLC0415 - an extra, and only for this

        empty = _message_type()()
    except ImportError as error:
        return Verdict(accepted=None, problem=f"{error}; {INSTALL}")
    except Exception as error:  # noqa: BLE001 - a schema made for another protobuf raises its own error
        return Verdict(accepted=None, problem=f"{type(error).__name__}: {error}; {INSTALL}")
    try:
        # Bytes that are not UTF-8 matter in strings only, and there they have been refused before.
        text_format.Parse(text.encode("utf-8", "replace").decode("utf-8"), empty)
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        at = None if line is None or column is None else Position(line=line, column=column)
        return Verdict(accepted=False, problem=str(error), at=at)
    except ValueError as error:
        return Verdict(accepted=False, problem=str(error))
    return Verdict(accepted=True)


@lru_cache(maxsize=1)
def _message_type() -> type[Message]:
    package = importlib.util.find_spec("tritonclient")
    if package is None or not package.submodule_search_locations:
        raise ImportError("No module named 'tritonclient'")
    path = Path(package.submodule_search_locations[0]) / _SCHEMA
    spec = importlib.util.spec_from_file_location("aotidoctor_model_config_pb2", str(path))
    if spec is None or spec.loader is None:
        raise ImportError(f"no module at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: type[Message] = module.ModelConfig
    return kind
