"""Files of tapes that are tiny, and declare what is huge."""
from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from typing import Any

from jitad.export.saved import unpacked


def test_a_tiny_file_takes_no_gigabytes() -> None:
    """Files of about 300 bytes that declare 10^10 elements and 10^12 steps: read by shapes alone, and not run."""
    def nested(depth: int) -> Any:
        if not depth:
            return nodes_of({"op": "exp", "in": [0]})
        loop = {"length": 10**12, "carries": 1, "counter": False, "reverse": False, "until": False, "recompute": False,
                "scanned": [], "body": {"tape": nested(depth - 1)}}
        pick = {"op": "pick", "in": [1], "params": {"index": 0, "shape": [], "dtype": "float64"}}
        return nodes_of({"op": "scan", "in": [0], "params": loop}, pick)

    def nodes_of(*nodes: Any) -> Any:
        return {"nodes": [{"op": "input", "type": ["float64", []]}, *nodes], "inputs": [0], "names": ["x"],
                "outputs": [len(nodes)], "labels": [], "guards": []}
    large = {"op": "view", "in": [0], "params": {"shape": [10**5, 10**5], "index": []}}
    vector = {"op": "reshape", "in": [0], "params": {"shape": [1]}}
    joined = [{"op": "concatenate", "in": [i] * 64, "params": {"axis": 0}} for i in range(1, 7)]
    for tape in (nodes_of(large, {"op": "exp", "in": [1]}), nodes_of(vector, *joined), nested(20)):
        data = {"format": "jitad tape", "version": 1, "jitad": "0.1.0", "name": "f", "captured": 0, "tape": tape,
                "arguments": [{"name": "x", "structure": "*", "static": []}], "forms": [["array", "float64"]],
                "frame": None}
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("tape.json", json.dumps(data))
        assert len(file.getvalue()) < 500
        tracemalloc.start()
        try:
            assert unpacked(file.getvalue(), "a tiny file").tape.outputs
            assert tracemalloc.get_traced_memory()[1] < 1e7
        finally:
            tracemalloc.stop()
