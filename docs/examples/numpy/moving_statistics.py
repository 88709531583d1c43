"""Means, spreads and medians of a window that moves over a series with gaps."""


def main(np, size=2000, width=25):
    """Return the moving mean, standard deviation and median, and where the series leaves them."""
    rng = np.random.default_rng(2)
    series = np.cumsum(rng.standard_normal(size)) * 0.1
    series[rng.integers(0, size, 12)] += 8.0  # outliers
    series[rng.integers(0, size, 40)] = np.nan  # gaps

    is_there = ~np.isnan(series)
    filled = np.where(is_there, series, np.nanmean(series))

    def moving(x):
        """Return the sums of all windows, from one running sum."""
        total = np.concatenate([[0.0], np.cumsum(x)])
        return total[width:] - total[:-width]

    mean = moving(filled) / width
    spread = np.sqrt(np.maximum(moving(filled**2) / width - mean**2, 0.0))
    windows = np.lib.stride_tricks.sliding_window_view(filled, width)
    median = np.median(windows, axis=1)
    middle = filled[width // 2 : width // 2 + mean.size]
    limit = 4 * np.quantile(np.abs(middle - median), 0.75)
    outliers = np.flatnonzero(np.abs(middle - median) > limit) + width // 2
    steps = np.diff(median)
    return mean, spread, median, outliers, np.std(steps), np.max(spread)


if __name__ == "__main__":
    import numpy

    import gpualgo.numpy as gnp

    *_, outliers, step, most = main(gnp.wrap(numpy))
    print(f"{outliers.size} outliers; a step is {step:.3f}, the greatest spread {most:.2f}")
