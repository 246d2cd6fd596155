"""Tapes as graphs."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np

import jitad

SVG = "{http://www.w3.org/2000/svg}"


def test_a_tape_as_a_graph():
    compiled = jitad.value_and_grad(lambda p, x: np.sum(np.exp(p["a<b"]) * x)).compile({"a<b": 1.0}, np.ones(3))
    graph = compiled.graph()
    dot = graph.dot
    assert dot.startswith("digraph tape {") and dot.endswith("}") and repr(graph) == dot
    shown = dot.count("[label=")
    edges = dot.count("->")
    assert "value" in dot and "exp(" in dot and edges >= 4
    drawing = ElementTree.fromstring(graph._repr_svg_())
    boxes, texts = drawing.findall(f"{SVG}rect"), [t.text for t in drawing.findall(f"{SVG}text")]
    assert len(boxes) == shown and len(drawing.findall(f"{SVG}path")) == edges
    assert any("p['a<b']" in text for text in texts)
    rows: dict[str, list[tuple[float, float]]] = {}
    for box in boxes:
        rows.setdefault(box.get("y"), []).append((float(box.get("x")), float(box.get("width"))))
    for row in rows.values():                          # no box lies on another
        row.sort()
        assert all(x + width < following for (x, width), (following, _) in pairwise(row))


def test_labels_are_escaped():
    compiled = jitad.jit(lambda p: p['quo"te'] * 2.0).compile({'quo"te': 1.0})
    assert '\\"' in compiled.graph().dot
