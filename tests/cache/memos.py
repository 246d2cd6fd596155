"""A memo that remembers entries of the store, and many threads at once."""
import threading

PATIENCE = 10  # seconds until a hanging thread counts as a deadlock


class Memo:
    """A one-entry memo as a decorated function has it."""

    def __init__(self):
        self.entry = None

    def forget(self):
        self.entry = None


def run_all(*jobs):
    """Run the jobs at the same time, each in a thread; return results or exceptions in order."""
    results = [None] * len(jobs)
    barrier = threading.Barrier(len(jobs))

    def run(i, job):
        barrier.wait()
        try:
            results[i] = job()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i, job), daemon=True) for i, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "deadlock"
    return results


def publish(store, owner, key, memo):
    entry = store.get_or_build(owner, key, object)
    return store.publish(owner, key, entry, memo, lambda: setattr(memo, "entry", entry))
