"""The k nearest neighbours of some points, and what they say of them."""


def main(np, size=400, k=5):
    """Return the neighbours of new points, the class that most are of, and how often it fits."""
    rng = np.random.default_rng(1)
    centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    known = rng.integers(0, 3, size)
    points = centers[known] + rng.standard_normal((size, 2))
    wanted = rng.integers(0, 3, size // 4)
    new = centers[wanted] + rng.standard_normal((size // 4, 2))

    distances = np.sum((new[:, np.newaxis, :] - points) ** 2, axis=-1)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    votes = known[nearest]
    of_each = np.stack([np.count_nonzero(votes == one, axis=1) for one in range(3)], axis=1)
    found = np.argmax(of_each, axis=1)
    return nearest, found, np.mean(found == wanted)


if __name__ == "__main__":
    import numpy

    import gpualgo.numpy as gnp

    nearest, found, share = main(gnp.wrap(numpy))
    print(f"{share:.0%} of {len(found)} points are of the class that their neighbours are of")
