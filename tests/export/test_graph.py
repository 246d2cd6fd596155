"""Tapes as graphs."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np

import jitad
from jitad.tape.display import COLOURS

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
    boxes, texts = drawing.findall(f".//{SVG}rect"), [t.text for t in drawing.findall(f".//{SVG}text")]
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


def test_nodes_have_the_colour_of_their_group_and_the_users_line():
    compiled = jitad.jit(lambda x, A: np.exp(A @ x)[::2]).compile(np.ones(3), np.ones((4, 3)))
    drawing = ElementTree.fromstring(compiled.graph().svg)
    groups = drawing.findall(f"{SVG}g")
    fills = {g.find(f"{SVG}text").text.split("(")[0].split()[0]: g.find(f"{SVG}rect").get("fill") for g in groups}
    assert fills["input"] == COLOURS["given"] and fills["exp"] == COLOURS["elements"]
    assert fills["contract"] == COLOURS["sums"]
    assert all("np.exp(A @ x)[::2]" in g.find(f"{SVG}title").text for g in groups)


def test_a_tape_is_a_page_in_a_notebook():
    def f(x):
        return np.sum(np.where(x < 2.0, x, 1.0))
    text = jitad.jit_grad(f).tape(np.zeros(3))
    page = ElementTree.fromstring(text._repr_html_())
    lines = ["".join(line.itertext()) for line in page.findall("span")][len(COLOURS):]
    assert "\n".join(lines) == text == repr(text)     # escaped, and nothing lost
    titled = [line.get("title") for line in page.findall("span") if line.get("title")]
    assert any(title.endswith("return np.sum(np.where(x < 2.0, x, 1.0))") for title in titled)
    assert jitad.jit(f).compile(np.zeros(3)).tape._repr_html_().startswith("<pre")
