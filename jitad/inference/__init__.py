"""From a log density to estimates: posteriors, their draws, modes and marginal likelihoods."""
