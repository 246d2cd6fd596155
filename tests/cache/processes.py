"""Processes that work on the store on disk at the same time."""
import os
import signal
import sys
import time

PATIENCE = 120.0                # seconds; a process of low priority may wait long for a processor


def start(job):
    """Run `job` in a child process, whose exit status is 0 only if it returns."""
    child = os.fork()
    if child:
        return child
    try:
        job()
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.__stderr__, flush=True)
        os._exit(1)


def wait(child, timeout=PATIENCE):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("a process hangs")
