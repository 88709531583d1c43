"""The price of an Asian option by simulation: it pays by the mean price of many paths' days."""


def main(np, paths=4000, days=64):
    """Return the price, its standard error, quantiles of the pay-off and its histogram."""
    spot, strike, rate, volatility, years = 100.0, 105.0, 0.03, 0.25, 1.0
    rng = np.random.default_rng(3)
    half = rng.standard_normal((paths // 2, days))
    normal = np.concatenate([half, -half])  # each path and its mirror image

    step = years / days
    growth = (rate - volatility**2 / 2) * step + volatility * np.sqrt(step) * normal
    prices = spot * np.exp(np.cumsum(growth, axis=1))
    payoff = np.exp(-rate * years) * np.maximum(np.mean(prices, axis=1) - strike, 0.0)

    pairs = (payoff[: paths // 2] + payoff[paths // 2 :]) / 2
    error = np.std(pairs, ddof=1) / np.sqrt(pairs.size)
    worth = payoff[payoff > 0]
    counts, edges = np.histogram(worth, bins=20, density=True)
    drawdown = np.max(np.maximum.accumulate(prices, axis=1) - prices, axis=1)
    return np.mean(payoff), error, np.quantile(payoff, [0.5, 0.9, 0.99]), counts, edges, drawdown


if __name__ == "__main__":
    import numpy

    import gpualgo.numpy as gnp

    price, error, *_ = main(gnp.wrap(numpy))
    print(f"the option is worth {price:.2f} ± {error:.2f}")
