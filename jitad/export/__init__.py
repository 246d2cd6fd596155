"""How a tape leaves the process: as a file, a library, an ONNX model, a drawing."""
from __future__ import annotations

from typing import Any

from jitad.call.compiled import EXPORTS


def _graph(tape: Any) -> Any:
    from jitad.export.graph import TapeGraph

    return TapeGraph(tape)


def _library(*arguments: Any) -> Any:
    from jitad.export.library import of_vector

    return of_vector(*arguments)


def _onnx(*arguments: Any) -> None:
    from jitad.export.onnx.export import export

    export(*arguments)


def _save(*arguments: Any) -> None:
    from jitad.export.saved import save

    save(*arguments)


EXPORTS.update(graph=_graph, library=_library, onnx=_onnx, save=_save)
