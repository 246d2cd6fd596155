"""Compiled code found again by another process: plans in JSON, two-step look-up, plans added at the same time."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from jitad.cache.disk import DiskStore
from jitad.cache.keys.captures import Plan
from jitad.cache.keys.encoding import Unstorable
from jitad.cache.keys.identity import code_key, unwrap
from jitad.cache.persistent import PLANS, Persistent, _place_key
from tests.cache.keys.plans import HELPER, Frozen, X, cell, glob, helper_plan, make, module, plan_of
from tests.cache.processes import start, wait
from tests.helpers.fetching import fetch_of

FIRST = "ab" * 20


def again(plan):
    """The plan as another process would load it."""
    return Plan.from_json(json.loads(json.dumps(plan.to_json())))


@pytest.fixture
def told():
    return []


@pytest.fixture
def persistent(tmp_path, told):
    return Persistent(DiskStore(tmp_path / "cache", warn=told.append))


# --- plans ----------------------------------------------------------------------------------------------------------


def test_a_loaded_plan_matches_fetches_and_explains():
    _, names = module(HELPER, mode="a", cfg=Frozen(3), data={"X": X, "Y": X}, params=[1.0, 2.0])
    plan = helper_plan(names)
    plan.code = code_key(names["f"])
    for steps, kind, value in [
        (glob("np"), "guard", np), (glob("len"), "guard", len), (glob("mode"), "guard", "a"),
        (glob("cfg"), "guard", Frozen(3)), (glob("cfg", ("type",)), "guard", Frozen), (glob("data", ("keys",)), "guard",
        ("X", "Y")), (glob("data", ("item", "X")), "input", X), (glob("params", ("len",)), "guard", 2),
    ]:  # fmt: skip
        plan.add(plan_of((steps, kind, value)).reads.popitem()[0][0], kind, value)
    loaded, target = again(plan), unwrap(names["f"])
    assert loaded.inputs == plan.inputs and loaded.guards == plan.guards and loaded.code == plan.code
    assert loaded.reads == plan.reads and list(loaded.reads) == list(plan.reads)
    assert loaded.matches(target) and fetch_of(loaded, target)() == (2.0, 1.0, X)
    names["mode"] = "b"
    assert loaded.changes(target) == ["global `mode`: 'a' -> 'b'"] and fetch_of(loaded, target) is None
    names["mode"] = "a"
    exec("def helper(x): return x + 1", names)
    assert not loaded.matches(target), "an edited helper is a miss"


def test_plans_with_guards_that_mean_nothing_elsewhere_are_refused(persistent):
    class Local:
        pass

    plan = plan_of((glob("c"), "guard", Local))
    with pytest.raises(Unstorable):
        plan.to_json()
    assert not persistent.store(FIRST, plan, b"x") and not os.path.exists(persistent.disk.root)


@pytest.mark.parametrize(
    "data",
    [None, 1, [], {}, {"code": "a"}, {"code": "a", "reads": 1}, {"code": "a", "reads": [[1, 2]]},
     {"code": "a", "reads": [["t", "guard", 1]]}, {"code": "a", "reads": [[["t"], "guard", 1]]},
     {"code": "a", "reads": [[["path"], "other", 1]]}],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_broken_plans_are_value_errors(data):
    with pytest.raises((ValueError, TypeError)):
        Plan.from_json(data)


# --- look-up --------------------------------------------------------------------------------------------------------


def mode_plan(mode):
    return plan_of((glob("mode"), "guard", mode), (glob("s"), "input", 1.0))


def mode_target(mode):
    return unwrap(module("def f(x): return x * s", mode=mode, s=1.0)[1]["f"])


def test_the_plan_that_matches_is_found(persistent, told):
    assert persistent.find(FIRST, mode_target("a")) is None
    for mode in ("a", "b"):
        assert persistent.store(FIRST, mode_plan(mode), f"code for {mode}".encode(), {"function": "f"})
    for mode in ("a", "b"):
        plan, payload = persistent.find(FIRST, mode_target(mode))
        assert payload == f"code for {mode}".encode() and fetch_of(plan, mode_target(mode))() == (1.0,)
    assert persistent.find(FIRST, mode_target("c")) is None and persistent.find("cd" * 20, mode_target("a")) is None
    assert {entry.meta["kind"] for entry in persistent.disk.entries()} == {"plan", "code"} and told == []


def test_storing_again_replaces_the_payload_and_adds_no_plan(persistent):
    for n in range(3):
        persistent.store(FIRST, mode_plan("a"), f"{n}".encode())
    assert [payload for _, payload in persistent.matches(FIRST, mode_target("a"))] == [b"2"]
    assert len(list(persistent.disk.entries())) == 2


def test_variants_of_one_plan_lie_side_by_side(persistent):
    for way in ("left", "right", "left"):
        assert persistent.store(FIRST, mode_plan("a"), way.encode(), variant=way)
    assert sorted(payload for _, payload in persistent.matches(FIRST, mode_target("a"))) == [b"left", b"right"]
    assert list(persistent.matches(FIRST, mode_target("b"))) == []


def test_parts_that_are_gone_or_broken_are_stored_again(persistent, told):
    store, target = persistent.disk, mode_target("a")
    for kind in ("plan", "code"):
        persistent.store(FIRST, mode_plan("a"), b"x")
        assert store.clear(lambda entry, kind=kind: entry.meta["kind"] == kind) == 1
        assert persistent.find(FIRST, target) is None
        persistent.store(FIRST, mode_plan("a"), b"y")
        assert persistent.find(FIRST, target)[1] == b"y"
    for entry in list(store.entries()):
        with open(os.path.join(store.root, entry.key + ".jitad"), "r+b") as file:
            file.truncate(50)
    assert persistent.find(FIRST, target) is None and len(told) == 1
    assert persistent.store(FIRST, mode_plan("a"), b"z") and persistent.find(FIRST, target)[1] == b"z"


def test_more_plans_than_places(persistent):
    for n in range(3 * PLANS):
        assert persistent.store(FIRST, mode_plan(f"m{n}"), f"{n}".encode())
        assert persistent.find(FIRST, mode_target(f"m{n}"))[1] == f"{n}".encode()
    found = [n for n in range(3 * PLANS) if persistent.find(FIRST, mode_target(f"m{n}"))]
    assert PLANS // 2 < len(found) <= PLANS


def test_a_full_disk_is_no_plan_without_code(tmp_path):
    persistent = Persistent(DiskStore(tmp_path / "cache", maxbytes=700))
    assert not persistent.store(FIRST, mode_plan("a"), b"x" * 1000) and list(persistent.disk.entries()) == []


def test_nothing_that_is_found_raises(persistent):
    texts = [b"", b"[]", b"{}", b"nonsense", b'{"plan": {"code": null, "reads": [[["path", 1], "guard", 1]]}}']
    texts.append(b'{"plan": {"code": 1, "reads": [[["o", "os", "system", ""], "guard", 1]]}}')
    for n, text in enumerate(texts):
        persistent.disk.put(_place_key(FIRST, n), text, {"kind": "plan"})
    assert persistent.find(FIRST, mode_target("a")) is None
    assert persistent.store(FIRST, mode_plan("a"), b"x") and persistent.find(FIRST, mode_target("a"))[1] == b"x"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_that_add_plans_at_the_same_time_lose_none(persistent):
    modes = [f"m{n}" for n in range(PLANS)]

    def work(n):
        for mode in (modes[n], modes[(n + 1) % PLANS]):
            assert persistent.store(FIRST, mode_plan(mode), mode.encode())

    children = [start(lambda n=n: work(n)) for n in range(PLANS)]
    assert [wait(child) for child in children] == [0] * PLANS
    assert [persistent.find(FIRST, mode_target(mode))[1] for mode in modes] == [mode.encode() for mode in modes]


# --- another process ------------------------------------------------------------------------------------------------

SCRIPT = """
    import enum, sys
    import numpy as np, optree
    from jitad.cache.keys.captures import Path, Plan
    from jitad.cache.disk import DiskStore
    from jitad.cache.keys.fingerprint import fingerprint
    from jitad.cache.keys.identity import code_key, unwrap
    from jitad.cache.persistent import Persistent
    from jitad.cache.keys.signature import Signature

    class Mode(enum.Enum):
        A = {value}
    tags, mode = {{1, 20, 300}}, Mode.A
    def helper(x): return x in {{"p", "q", "r", {constant}}}
    def f(p): return helper(p)

    signature = Signature.of([np.zeros(3), "s"], optree.tree_structure({{"b": 1, "a": 2}}))
    first = fingerprint([code_key(f), signature, ("grad", 0)])
    persistent, target = Persistent(DiskStore({root!r})), unwrap(f)
    found = persistent.find(first, target)
    print(first, found and found[1].decode())
    if found is None:
        plan = Plan(code_key(f))
        for name in ("helper", "tags", "mode", "np"):
            plan.add(Path.of(("global", name)), "guard", globals()[name])
        assert persistent.store(first, plan, {payload!r}, {{"function": "f"}})
"""


def test_another_process_finds_it_and_an_edited_one_does_not(tmp_path):
    def run(seed, value=1, constant=7, payload=b"code"):
        text = textwrap.dedent(SCRIPT).format(root=str(tmp_path / "c"), value=value, constant=constant, payload=payload)
        (tmp_path / "script.py").write_text(text)
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, str(tmp_path / "script.py")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    first, found = run(seed=1)
    assert found == "None" and run(seed=2) == [first, "code"]
    assert run(seed=3, constant=8, payload=b"other") == [first, "None"], "another helper"
    assert run(seed=4, value=2) == [first, "None"], "another enum"


def test_a_plan_of_a_closure(persistent):
    f = make(X, 2.0)
    plan = plan_of((cell("array", f), "input", X), (cell("scale", f), "input", 2.0), code=code_key(f))
    persistent.store(FIRST, plan, b"x")
    loaded, _ = persistent.find(FIRST, unwrap(make(X + 1, 3.0)))
    assert fetch_of(loaded, unwrap(make(X, 5.0)))() == (X, 5.0)
    assert persistent.find(FIRST, unwrap(make(np.zeros(4), 3.0))) is None, "another shape"
