"""Memory for the work arrays of kernels, kept between calls.

Fresh memory costs a page fault for every 4 KiB, many times what a kernel does with it. So what a call took is put into
a slot, from which the next one takes it, in whatever thread: a slot is emptied and filled by one atomic exchange, so
that no call ever waits, with or without the GIL. Blocks are powers of two, but for the largest, which are not kept; of
each size a few are, and `KEPT` bytes in all; `release` gives them back.
"""
from __future__ import annotations

from functools import partial
from typing import Any

from jitad import cache
from jitad.compile.llvm.ir import INT64, RAW, VOID
from jitad.compile.llvm.native import Native, compile_module, once
from jitad.compile.llvm.symbols import ADDRESSES, LATER

KEPT = 128 << 20               # bytes
SMALLEST, CLASSES, EACH = 14, 14, 4        # the logarithm of the smallest block, how many sizes, kept of each
HEAD = 128                     # bytes of a block for its address, its class and its place in a line of the cache

_PREFIX = "jitad_"             # of the names by which other code knows them
_TAKE, _PART, _GIVE, _RELEASE = (f"workspace_{verb}" for verb in ("take", "part", "give", "release"))
_SOURCE = f"""
@slots = internal global [{CLASSES * EACH} x ptr] zeroinitializer
@kept = internal global i64 0
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)

define ptr @{_TAKE}(i64 %size) {{
  %all = add i64 %size, {HEAD - 1}
  %zeros = call i64 @llvm.ctlz.i64(i64 %all, i1 false)
  %log = sub i64 64, %zeros
  %above = sub i64 %log, {SMALLEST}
  %class = call i64 @llvm.smax.i64(i64 %above, i64 0)
  %bits = add i64 %class, {SMALLEST}
  %bytes = shl i64 1, %bits
  %known = icmp ult i64 %class, {CLASSES}
  br i1 %known, label %look, label %fresh
look:
  %first = mul i64 %class, {EACH}
  %row = getelementptr ptr, ptr @slots, i64 %first
  br label %next
next:
  %k = phi i64 [0, %look], [%more, %empty]
  %slot = getelementptr ptr, ptr %row, i64 %k
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %any = icmp ne ptr %seen, null
  br i1 %any, label %grasp, label %empty
grasp:
  %found = atomicrmw xchg ptr %slot, ptr null acq_rel
  %mine = icmp ne ptr %found, null
  br i1 %mine, label %taken, label %empty
empty:
  %more = add i64 %k, 1
  %left = icmp ult i64 %more, {EACH}
  br i1 %left, label %next, label %fresh
taken:
  %less = atomicrmw sub ptr @kept, i64 %bytes monotonic
  ret ptr %found
fresh:
  %whole = add i64 %size, {HEAD}
  %asked = select i1 %known, i64 %bytes, i64 %whole
  %raw = call ptr @malloc(i64 %asked)
  %none = icmp eq ptr %raw, null
  br i1 %none, label %failed, label %made
failed:
  ret ptr null
made:
  %address = ptrtoint ptr %raw to i64
  %beyond = add i64 %address, {HEAD - 1}
  %line = and i64 %beyond, -64
  %block = inttoptr i64 %line to ptr
  %owner = getelementptr i64, ptr %block, i64 -2
  store ptr %raw, ptr %owner
  %label = getelementptr i64, ptr %block, i64 -1
  store i64 %class, ptr %label
  ret ptr %block
}}

define ptr @{_PART}(ptr %block, i64 %offset) {{
  %part = getelementptr i8, ptr %block, i64 %offset
  ret ptr %part
}}

define void @{_GIVE}(ptr %block) {{
  %label = getelementptr i64, ptr %block, i64 -1
  %class = load i64, ptr %label
  %known = icmp ult i64 %class, {CLASSES}
  br i1 %known, label %count, label %drop
count:
  %bits = add i64 %class, {SMALLEST}
  %bytes = shl i64 1, %bits
  %before = atomicrmw add ptr @kept, i64 %bytes monotonic
  %after = add i64 %before, %bytes
  %fits = icmp ule i64 %after, BOUND
  br i1 %fits, label %look, label %uncount
look:
  %first = mul i64 %class, {EACH}
  %row = getelementptr ptr, ptr @slots, i64 %first
  br label %next
next:
  %k = phi i64 [0, %look], [%more, %full]
  %slot = getelementptr ptr, ptr %row, i64 %k
  %pair = cmpxchg ptr %slot, ptr null, ptr %block acq_rel monotonic
  %done = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %done, label %put, label %full
put:
  ret void
full:
  %more = add i64 %k, 1
  %left = icmp ult i64 %more, {EACH}
  br i1 %left, label %next, label %uncount
uncount:
  %less = atomicrmw sub ptr @kept, i64 %bytes monotonic
  br label %drop
drop:
  %owner = getelementptr i64, ptr %block, i64 -2
  %raw = load ptr, ptr %owner
  call void @free(ptr %raw)
  ret void
}}

define i64 @{_RELEASE}() {{
  br label %next
next:
  %k = phi i64 [0, %0], [%more, %further]
  %total = phi i64 [0, %0], [%sum, %further]
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel
  %any = icmp ne ptr %block, null
  br i1 %any, label %drop, label %further
drop:
  %label = getelementptr i64, ptr %block, i64 -1
  %class = load i64, ptr %label
  %bits = add i64 %class, {SMALLEST}
  %size = shl i64 1, %bits
  %less = atomicrmw sub ptr @kept, i64 %size monotonic
  %owner = getelementptr i64, ptr %block, i64 -2
  %raw = load ptr, ptr %owner
  call void @free(ptr %raw)
  br label %further
further:
  %bytes = phi i64 [0, %next], [%size, %drop]
  %sum = add i64 %total, %bytes
  %more = add i64 %k, 1
  %left = icmp ult i64 %more, {CLASSES * EACH}
  br i1 %left, label %next, label %done
done:
  ret i64 %sum
}}
"""


def source(kept: int) -> str:
    """The functions in LLVM's language; they keep so many bytes at most."""
    return _SOURCE.replace("BOUND", str(kept))


@once
def _code() -> Native:
    return compile_module(source(KEPT), level=1, vector_width=0)


def standalone() -> dict[str, str]:
    """The functions by the names that other code calls them by, each with the text of them all."""
    text = source(KEPT).replace(f"define i64 @{_RELEASE}(", f"define internal i64 @{_RELEASE}(")
    for name in (_TAKE, _PART, _GIVE):
        text = text.replace(f"@{name}(", f"@{_PREFIX}{name}(")
    return dict.fromkeys((_PREFIX + name for name in (_TAKE, _PART, _GIVE)), text)


def release() -> int:
    """Give back what is kept; the number of bytes. Safe while kernels run: what they use is not kept."""
    return int(_code().function(_RELEASE)()) if _PREFIX + _TAKE in ADDRESSES else 0


def taken(builder: Any, size: int) -> Any:
    """LLVM code for so many bytes at the start of a line of the cache, or null."""
    return builder.call(builder.module.declare(_PREFIX + _TAKE, RAW, [INT64], before="noalias"), [INT64(size)])


def part(builder: Any, block: Any, offset: int) -> Any:
    """The same for a part of what was taken. LLVM is told that nothing else is there: parts do not overlap, and the
    whole is not used but to give it back."""
    function = builder.module.declare(_PREFIX + _PART, RAW, [RAW, INT64], before="noalias")
    return builder.call(function, [block, INT64(offset)])


def given(builder: Any, block: Any) -> None:
    """LLVM code that gives back what was taken."""
    builder.call(builder.module.declare(_PREFIX + _GIVE, VOID, [RAW]), [block])


def _address(name: str) -> int:
    return _code().address(name)


LATER.update({_PREFIX + name: partial(_address, name) for name in (_TAKE, _PART, _GIVE)})
cache.set_releaser(release)
