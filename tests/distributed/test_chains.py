"""Chains on a cluster of processes."""
from __future__ import annotations

import os
import signal
from importlib.metadata import version

import numpy as np
import pytest

import jitad
from jitad.constraints import positive, real
from jitad.distributed import keeper
from jitad.distributed.tasks import Tasks
from jitad.inference.nuts import Progress

pytestmark = pytest.mark.filterwarnings("ignore:.*(diverged|do not agree)")
Y = np.array([1.2, 0.7, 2.1, -0.3])


def logp(mu, tau, y):
    return np.sum(-0.5 * ((y - mu) / tau) ** 2 - np.log(tau)) - tau - 0.5 * mu**2


POST = jitad.posterior(logp, dict(mu=real(), tau=positive()), data=(Y,),
                       log_likelihood=lambda mu, tau, y: -0.5 * ((y - mu) / tau) ** 2)
FEW = {"tune": 150, "chains": 3, "seed": 4}


def test_all_groups_are_those_of_one_machine_and_there_is_one_line_of_progress(client, capsys):
    there, here = POST.sample(100, client=client, **FEW), POST.sample(100, progress=False, **FEW)
    assert there.posterior["tau"].shape == (3, 100)
    assert there.groups() == here.groups()
    for group in here.groups():
        assert there[group].equals(here[group])
    line = capsys.readouterr().err.strip().split("\r")[-1]
    assert line.startswith("3 chains: 750 of 750 draws, ") and "\n" not in line


def test_chains_of_a_lost_worker_are_done_again(client, monkeypatch):
    killed, report, workers = [], Progress.report, client.run(os.getpid)

    def killing(self, number, text):                         # at the first sign of life of a chain
        if not killed:
            killed.append(min(workers))
            os.kill(workers[killed[0]], signal.SIGKILL)
        report(self, number, text)
    monkeypatch.setattr(Progress, "report", killing)
    there = POST.draws(20_000, tune=200, chains=2, seed=1, client=client, progress=True)
    assert killed and workers[killed[0]] not in client.run(os.getpid).values()
    monkeypatch.undo()
    np.testing.assert_array_equal(there.free, POST.draws(20_000, tune=200, chains=2, seed=1).free)


@pytest.mark.parametrize("remote", [True, False])
def test_an_interrupt_gives_the_chains_that_have_ended(client, monkeypatch, remote):
    running = Tasks if remote else jitad.inference.nuts.Chains
    ended = running.ended

    def interrupted(self, within):
        while not self.found:
            ended(self, 0.01)
        raise KeyboardInterrupt
    monkeypatch.setattr(running, "ended", interrupted)
    with pytest.warns(jitad.SamplingWarning, match=r"interrupted: here are the draws of the (\d) of 9 chains"):
        found = POST.sample(100, tune=100, chains=9, seed=4, client=client if remote else None, progress=False)
    assert 1 <= len(found.posterior["mu"]) < 9


def test_what_cannot_be_sampled_there_is_refused(client, monkeypatch):
    with pytest.raises(jitad.SignatureError, match="nutpie has no option 'wrong'"):
        POST.draws(10, client=client, wrong=1, **FEW)
    with pytest.raises(jitad.ArgumentTypeError, match=r"client must be a distributed.Client, not a int"):
        POST.draws(10, client=3, **FEW)
    branching = jitad.posterior(lambda mu: -mu**2 if mu > 0 else -2.0 * mu**2, dict(mu=real()))
    with pytest.raises(jitad.UnsupportedOperationError, match=r"different ways .* at .*test_chains.py:\d+, of which"):
        branching.draws(10, client=client, **FEW)
    monkeypatch.setattr(keeper, "version", lambda name: "0.1" if name == "nutpie" else version(name))
    with pytest.raises(jitad.ClusterError, match=r"tcp.* has other versions: nutpie 0\.16\S* there and 0.1 here"):
        POST.draws(10, client=client, **FEW)
