"""How a tape leaves the process: as a file, an ONNX model, a drawing."""
from __future__ import annotations

from typing import Any

from jitad.call.compiled import EXPORTS


def _graph(tape: Any) -> Any:
    from jitad.export.graph import TapeGraph

    return TapeGraph(tape)


def _onnx(*arguments: Any) -> None:
    from jitad.export.onnx.export import export

    export(*arguments)


def _save(*arguments: Any) -> None:
    from jitad.export.saved import save

    save(*arguments)


EXPORTS.update(graph=_graph, onnx=_onnx, save=_save)
