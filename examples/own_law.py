"""A delay law of one's own: Weibull, compiled like the built-in ones. Its quantile function is all it is."""

import math
from dataclasses import dataclass

from belated import Fixed, Law, Mixture, Scenario, Thompson, simulate


@dataclass(frozen=True)
class Weibull(Law):
    """`P(l <= d) = 1 - exp(-(d / scale)^shape)` for whole d >= 1."""

    scale: float
    shape: float

    def quantile(self, q):
        return max(1.0, float(math.ceil(self.scale * (-math.log1p(-q)) ** (1 / self.shape)))) if q < 1 else math.inf

    def cdf(self, d):
        return -math.expm1(-((math.floor(d) / self.scale) ** self.shape)) if d >= 1 else 0.0


if __name__ == "__main__":
    for law in (Weibull(100, 0.5), Mixture([0.8, 0.2], [Weibull(100, 0.5), Fixed(2000)])):
        world = Scenario(means=[0.5, 0.4, 0.3], delay=law, rounds=10_000)
        result = simulate(world, [Thompson()], replications=100, seed=1)
        row = result.summary()[0]
        print(f"median delay {law.quantile(0.5):.0f}: regret {row['regret']:.1f} ± {row['se']:.1f}")
