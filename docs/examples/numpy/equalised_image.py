"""Histogram equalisation: a dark image whose grey levels are spread over all there are."""


def main(np, side=256):
    """Return the image, and how often each level occurs in it before and after."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side] / side
    light = np.exp(-8 * ((x - 0.4) ** 2 + (y - 0.6) ** 2)) + 0.05 * rng.random((side, side))
    image = np.clip(100 * light, 0, 255).astype(np.uint8)

    counts = np.bincount(np.ravel(image), minlength=256)
    darker = np.cumsum(counts)  # how many pixels are no lighter than a level
    least = darker[np.nonzero(counts)[0][0]]
    levels = np.round(255 * (darker - least) / (image.size - least))
    equalised = np.clip(levels, 0, 255).astype(np.uint8)[image]
    return equalised, counts, np.histogram(equalised, bins=16, range=(0, 256))[0]


if __name__ == "__main__":
    import numpy

    import gpualgo.numpy as gnp

    image, before, after = main(gnp.wrap(numpy))
    print(f"{numpy.count_nonzero(before)} levels, now from {image.min()} to {image.max()}")
    print("pixels in each sixteenth of the levels:", *after)
