"""Compare three policies when rewards come a hundred rounds late on average."""

from pathlib import Path

from belated import UCB1, Geometric, Scenario, SuccessiveElimination, Thompson, charts, simulate

world = Scenario(means=[0.5, 0.4, 0.3], delay=Geometric(0.01), rounds=10_000)
result = simulate(world, [Thompson(), UCB1(), SuccessiveElimination()], replications=100, seed=1)

for row in result.summary():
    print(f"{row['policy']:12} {row['regret']:7.1f} ± {row['se']:.1f}")

difference = result.compare("thompson", "ucb1")
print(f"thompson - ucb1: {difference.difference:.1f}, 95 % interval [{difference.low:.1f}, {difference.high:.1f}]")

charts.save(result.chart(title="Geometric delays"), Path("out/quickstart.svg"))
result.save(Path("out/quickstart.npz"))
