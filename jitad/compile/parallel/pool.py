"""The threads that run the parts of a kernel, and the way in for compiled code.

``jitad_parallel_run(part, context, count)`` calls ``part(context, number)`` for each number below `count`, on the
calling thread and on helpers, and returns the status of the first that fails, or 0. Who comes first takes the next
number, so a part does not depend on the thread that runs it, nor on how many there are: results are the same bits for
any number of threads.

Helpers are native threads that never touch Python, made when they are first needed; in between they sleep on locks of
Python's own (``PyThread_acquire_lock``), which are there on all platforms and want no GIL. One call at a time has
helpers, as many as there are cores that no other call uses; a call beside it runs on its own thread alone, and helpers
leave when more calls come than there are cores: the threads of a sampler do not multiply.

A helper is offered work (its state becomes 1) and woken; it takes it (2) unless the call has ended and withdrawn the
offer (0). `pending` counts the calling thread and the offers that are neither done nor withdrawn; who brings it to zero
last wakes the caller.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any

from jitad import cache
from jitad.compile.llvm.ir import INT64, RAW
from jitad.compile.llvm.native import Native, compile_module, once
from jitad.compile.llvm.symbols import ADDRESSES, LATER

MOST = 256                       # threads
RUN = "jitad_parallel_run"       # for kernels
_RUN, _HELP, _MEMORY = "parallel_run", "parallel_help", "parallel_memory"
THREADS, BUSY, CALLERS, STARTED, PART, CONTEXT, COUNT, FAILED, DONE = range(9)
NEXT, PENDING, LOCKS = 16, 24, 32       # words of the pool's memory: those that all threads write have a line each
STATES = LOCKS + MOST
_SOURCE = """
@{memory} = global [{words} x i64] zeroinitializer, align 64

define internal ptr @word(i64 %number) alwaysinline {{
  %p = getelementptr i64, ptr @{memory}, i64 %number
  ret ptr %p
}}

define internal void @wait_for(i64 %number) {{
  %p = call ptr @word(i64 %number)
  %lock = load ptr, ptr %p
  %done = call i32 inttoptr (i64 {acquire} to ptr)(ptr %lock, i32 1)
  ret void
}}

define internal void @wake(i64 %number) {{
  %p = call ptr @word(i64 %number)
  %lock = load ptr, ptr %p
  call void inttoptr (i64 {release} to ptr)(ptr %lock)
  ret void
}}

define internal void @work(i64 %me) {{
  %threads_at = call ptr @word(i64 {THREADS})
  %callers_at = call ptr @word(i64 {CALLERS})
  %next_at = call ptr @word(i64 {NEXT})
  %failed_at = call ptr @word(i64 {FAILED})
  %part_at = call ptr @word(i64 {PART})
  %context_at = call ptr @word(i64 {CONTEXT})
  %count_at = call ptr @word(i64 {COUNT})
  %part = load ptr, ptr %part_at
  %context = load ptr, ptr %context_at
  %count = load i64, ptr %count_at
  br label %look
look:
  %helper = icmp sgt i64 %me, 0
  br i1 %helper, label %room, label %grasp
room:
  %threads = load atomic i64, ptr %threads_at monotonic, align 8
  %callers = load atomic i64, ptr %callers_at monotonic, align 8
  %free = sub i64 %threads, %callers
  %stay = icmp sle i64 %me, %free
  br i1 %stay, label %grasp, label %out
grasp:
  %number = atomicrmw add ptr %next_at, i64 1 acq_rel
  %some = icmp slt i64 %number, %count
  br i1 %some, label %run, label %out
run:
  %status = call i64 %part(ptr %context, i64 %number)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %look, label %fail
fail:
  %high = shl i64 %number, 8
  %low = and i64 %status, 255
  %told = or i64 %high, %low
  %first = atomicrmw umin ptr %failed_at, i64 %told acq_rel
  br label %look
out:
  ret void
}}

define void @{help}(ptr %given) {{
  %me = ptrtoint ptr %given to i64
  %lock = add i64 %me, {LOCKS}
  %place = add i64 %me, {STATES}
  %state = call ptr @word(i64 %place)
  %pending = call ptr @word(i64 {PENDING})
  br label %sleep
sleep:
  call void @wait_for(i64 %lock)
  %pair = cmpxchg ptr %state, i64 1, i64 2 acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %begin, label %sleep
begin:
  call void @work(i64 %me)
  store atomic i64 0, ptr %state release, align 8
  %before = atomicrmw sub ptr %pending, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %tell, label %sleep
tell:
  call void @wake(i64 {DONE})
  br label %sleep
}}

define internal i64 @helpers(i64 %wanted) {{
  %started_at = call ptr @word(i64 {STARTED})
  br label %look
look:
  %started = load i64, ptr %started_at
  %enough = icmp sge i64 %started, %wanted
  br i1 %enough, label %out, label %begin
begin:
  %number = add i64 %started, 1
  %given = inttoptr i64 %number to ptr
  %id = call {long} inttoptr (i64 {start} to ptr)(ptr @{help}, ptr %given)
  %none = icmp eq {long} %id, -1
  br i1 %none, label %out, label %count
count:
  store i64 %number, ptr %started_at
  br label %look
out:
  %found = phi i64 [%wanted, %look], [%started, %begin]
  ret i64 %found
}}

define i64 @{run}(ptr %part, ptr %context, i64 %count) {{
  %callers_at = call ptr @word(i64 {CALLERS})
  %threads_at = call ptr @word(i64 {THREADS})
  %busy_at = call ptr @word(i64 {BUSY})
  %others = atomicrmw add ptr %callers_at, i64 1 acq_rel
  %threads = load atomic i64, ptr %threads_at monotonic, align 8
  %beside = sub i64 %threads, %others
  %free = sub i64 %beside, 1
  %parts = sub i64 %count, 1
  %few = icmp slt i64 %free, %parts
  %wanted = select i1 %few, i64 %free, i64 %parts
  %any = icmp sgt i64 %wanted, 0
  br i1 %any, label %grasp, label %alone
grasp:
  %busy = atomicrmw xchg ptr %busy_at, i64 1 acq_rel
  %mine = icmp eq i64 %busy, 0
  br i1 %mine, label %own, label %alone
alone:
  br label %step
step:
  %k = phi i64 [0, %alone], [%further, %next]
  %left = icmp slt i64 %k, %count
  br i1 %left, label %next, label %single
next:
  %further = add i64 %k, 1
  %one = call i64 %part(ptr %context, i64 %k)
  %fine = icmp eq i64 %one, 0
  br i1 %fine, label %step, label %single
single:
  %found = phi i64 [0, %step], [%one, %next]
  br label %leave
own:
  %part_at = call ptr @word(i64 {PART})
  %context_at = call ptr @word(i64 {CONTEXT})
  %count_at = call ptr @word(i64 {COUNT})
  %next_at = call ptr @word(i64 {NEXT})
  %failed_at = call ptr @word(i64 {FAILED})
  %pending_at = call ptr @word(i64 {PENDING})
  store ptr %part, ptr %part_at
  store ptr %context, ptr %context_at
  store i64 %count, ptr %count_at
  store atomic i64 0, ptr %next_at release, align 8
  store atomic i64 -1, ptr %failed_at release, align 8
  %made = call i64 @helpers(i64 %wanted)
  %all = add i64 %made, 1
  store atomic i64 %all, ptr %pending_at release, align 8
  br label %offer
offer:
  %w = phi i64 [1, %own], [%w2, %offered]
  %more = icmp sle i64 %w, %made
  br i1 %more, label %offered, label %help
offered:
  %place = add i64 %w, {STATES}
  %state = call ptr @word(i64 %place)
  store atomic i64 1, ptr %state release, align 8
  %lock = add i64 %w, {LOCKS}
  call void @wake(i64 %lock)
  %w2 = add i64 %w, 1
  br label %offer
help:
  call void @work(i64 0)
  br label %withdraw
withdraw:
  %v = phi i64 [1, %help], [%v2, %asked]
  %gone = phi i64 [1, %help], [%gone2, %asked]
  %again = icmp sle i64 %v, %made
  br i1 %again, label %asked, label %settle
asked:
  %place2 = add i64 %v, {STATES}
  %state2 = call ptr @word(i64 %place2)
  %pair = cmpxchg ptr %state2, i64 1, i64 0 acq_rel monotonic
  %back = extractvalue {{ i64, i1 }} %pair, 1
  %as = zext i1 %back to i64
  %gone2 = add i64 %gone, %as
  %v2 = add i64 %v, 1
  br label %withdraw
settle:
  %before = atomicrmw sub ptr %pending_at, i64 %gone acq_rel
  %all_done = icmp eq i64 %before, %gone
  br i1 %all_done, label %finish, label %wait
wait:
  call void @wait_for(i64 {DONE})
  br label %finish
finish:
  %told = load atomic i64, ptr %failed_at acquire, align 8
  store atomic i64 0, ptr %busy_at release, align 8
  %none = icmp eq i64 %told, -1
  %low = and i64 %told, 255
  %status = select i1 %none, i64 0, i64 %low
  br label %leave
leave:
  %result = phi i64 [%found, %single], [%status, %finish]
  %count_down = atomicrmw sub ptr %callers_at, i64 1 acq_rel
  ret i64 %result
}}
"""


def run_in(builder: Any, part: Any, context: Any, count: int) -> Any:
    """LLVM code that runs the parts; its status."""
    function = builder.module.declare(RUN, INT64, [RAW, RAW, INT64])
    return builder.call(function, [builder.bitcast(part, RAW), builder.bitcast(context, RAW), INT64(count)])


def available() -> int:
    """The threads that are used if no number is configured: one for each core that this process may run on, and no more
    than ``OMP_NUM_THREADS`` says, with which those who start many processes divide a machine."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "").strip()
    return min(mine, max(int(told), 1)) if told.isdecimal() else mine


class Pool:
    """The compiled functions, and the memory of the pool."""

    def __init__(self) -> None:
        self.native: Native = compile_module(_source(), level=1, vector_width=0)
        self.words = (ctypes.c_int64 * (STATES + MOST)).from_address(self.native.address(_MEMORY))
        self.begin()

    def begin(self) -> None:
        """Without helpers, as after a fork."""
        ctypes.memset(self.words, 0, ctypes.sizeof(self.words))
        self.words[DONE] = _held_lock()
        self.limit(cache.configuration().threads)

    def limit(self, threads: int | None) -> None:
        """Use so many threads, the calling one included."""
        number = min(threads or available(), MOST)
        for helper in range(1, number):
            if not self.words[LOCKS + helper]:
                self.words[LOCKS + helper] = _held_lock()
        self.words[THREADS] = number

    @property
    def helpers(self) -> int:
        """How many there are."""
        return int(self.words[STARTED])


def _source() -> str:
    addresses = {name: ctypes.cast(getattr(ctypes.pythonapi, f"PyThread_{function}"), ctypes.c_void_p).value
                 for name, function in (("acquire", "acquire_lock"), ("release", "release_lock"),
                                        ("start", "start_new_thread"))}
    return _SOURCE.format(memory=_MEMORY, run=_RUN, help=_HELP, words=STATES + MOST, THREADS=THREADS, BUSY=BUSY,
                          CALLERS=CALLERS, STARTED=STARTED, PART=PART, CONTEXT=CONTEXT, COUNT=COUNT, FAILED=FAILED,
                          DONE=DONE, NEXT=NEXT, PENDING=PENDING, LOCKS=LOCKS, STATES=STATES,
                          long=f"i{8 * ctypes.sizeof(ctypes.c_ulong)}", **addresses)


def _held_lock() -> int:
    """A lock of Python's that is held: who acquires it sleeps until another thread releases it."""
    api = ctypes.pythonapi
    make = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", api))
    acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(("PyThread_acquire_lock", api))
    lock = make()
    if not lock or not acquire(lock, 0):
        raise MemoryError("no memory for a lock")
    return int(lock)


pool = once(Pool)


def _limit(threads: int | None) -> None:
    if RUN in ADDRESSES:
        pool().limit(threads)


def _after_fork() -> None:
    if RUN in ADDRESSES:
        pool().begin()


LATER[RUN] = lambda: pool().native.address(_RUN)
cache.set_limiter(_limit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
