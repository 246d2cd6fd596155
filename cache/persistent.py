"""Compiled code on disk: found by what is known before a call, told apart by what the function captures.

What a function captures is known only once it has been recorded. So there are two steps: under the first key (code,
signature, versions, processor) lie the plans of all that was stored for it, each in an entry of its own at one of
`PLANS` places, so that processes adding plans at the same time lose none; under a key made of first key and plan lies
the payload. A plan whose payload is gone, or a payload whose plan is gone, is stored again when it is needed next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .disk import DiskStore
from .keys.captures import Plan
from .keys.encoding import Unstorable
from .keys.fingerprint import digest
from .keys.identity import Target

__all__ = ["PLANS", "Persistent"]

PLANS = 16  # kept for one first key: combinations of guarded values and ways through the code


class Persistent:
    """Payloads on `disk` by first key (see `fingerprint`) and plan of captures. Takes and gives bytes, runs nothing."""

    def __init__(self, disk: DiskStore) -> None:
        self.disk = disk

    def find(self, first_key: str, target: Target) -> tuple[Plan, bytes] | None:
        """Return a plan that matches what `target` captures now, and its payload; None if there is none.

        Never raises for what it finds on the disk.
        """
        return next(self.matches(first_key, target), None)

    def matches(self, first_key: str, target: Target) -> Iterator[tuple[Plan, bytes]]:
        """Yield every plan that matches what `target` captures now, with its payload: one for each variant."""
        for place in range(PLANS):
            text = self.disk.get(_place_key(first_key, place))
            plan = _plan(text) if text is not None else None
            if text is not None and plan is not None and plan.matches(target):
                payload = self.disk.get(_payload_key(first_key, text))
                if payload is not None:
                    yield plan, payload

    def store(
        self, first_key: str, plan: Plan, payload: bytes, meta: Mapping[str, Any] | None = None, variant: str = ""
    ) -> bool:
        """Store `payload` under first key, plan and variant, with `meta` for `python -m jitad cache list`.

        `meta` should have the name of the "function". `variant` tells payloads of one plan apart, such as those for
        the ways that a function takes through its branches; without it the payload replaces an earlier one. Returns
        whether it can be found now: not if the plan guards what has no meaning in another process, or the disk fails.
        """
        try:
            text = json.dumps({"plan": plan.to_json(), "variant": variant}, separators=(",", ":")).encode()
        except (Unstorable, RecursionError, ValueError):
            return False
        about = {**(meta or {}), "plan": digest(text)}
        # Payload first: a process killed in between leaves one that is not found, never a plan without payload.
        if not self.disk.put(_payload_key(first_key, text), payload, {**about, "kind": "code"}):
            return False
        return self._add(first_key, text, {**about, "kind": "plan"})

    def _add(self, first_key: str, text: bytes, meta: dict[str, Any]) -> bool:
        """Put a plan into the first free place, unless it has one."""
        keys = [_place_key(first_key, place) for place in range(PLANS)]
        for key in keys:
            known = self.disk.get(key)
            if known == text or (known is None and self.disk.put(key, text, meta, replace=False)):
                return True
            if known is None and self.disk.get(key) == text:  # another process was faster
                return True
        return self.disk.put(keys[int(digest(text), 16) % PLANS], text, meta)  # in the place of another


def _plan(text: bytes) -> Plan | None:
    """The plan, or None if it cannot match in this process."""
    try:
        return Plan.from_json(json.loads(text)["plan"])
    except (Unstorable, ValueError, RecursionError, LookupError, TypeError):
        return None


def _place_key(first_key: str, place: int) -> str:
    return digest(f"plan {place} of {first_key}".encode())


def _payload_key(first_key: str, text: bytes) -> str:
    return digest(f"code of {first_key} with {digest(text)}".encode())
