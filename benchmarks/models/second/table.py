"""The second set by name."""

from benchmarks.handwritten import second, second_ordered
from benchmarks.models.model import Model
from benchmarks.models.second import jax_series, regressions, series, structures

_HERE = {regressions: ("negative_binomial", "zero_inflated", "hurdle", "survival", "ordinal", "multinomial", "robust",
                       "mixture_of_lines", "spline", "copula"),
         structures: ("item_table", "network", "topics", "capture_recapture", "areas", "occupancy", "tournament",
                      "pharmacokinetics", "places", "factors", "dose_response", "crossed"),
         series: ("arma", "volatility", "hidden_counts", "trend", "renewal")}

SECOND = {name: Model(name, getattr(module, name), getattr(module, f"make_{name}"),
                      getattr(second, name, getattr(second_ordered, name, None)), getattr(jax_series, name, None))
          for module, names in _HERE.items() for name in names}
