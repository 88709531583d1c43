// Which bin a sample is in, exactly as NumPy says: edges[i] <= x < edges[i + 1], the last bin
// closed; NaN and what lies outside is in none.
//
// ByteBins    8-bit samples: their 256 values are counted, and values become bins at the end.
// UnitBins    8-bit samples and bins of one value each.
// EvenBins    even edges: a fixed-point position, and where that is too near an edge to tell, the
//             edge itself, computed as numpy.linspace does.
// SearchBins  any edges: a table of cells narrows a binary search to a step or two.
//
// EvenBins. Let v(x) = floor(F(x - origin) * scale * 2^k) + shift, F float or double, each
// operation rounded as the kernel rounds it; the product only once, with an addition and down, to
// a sum whose last bit is 2^-k, so that v stands in the sum's low bits. All of this is monotone.
// The host puts the first and the last sample of every bin b through it and chooses the shift and
// the least near_width w for which
//     v(first of b) >= b * 2^k   and   v(last of b) < (b + 1) * 2^k + w
// hold, hence hold for all samples of b (`fit` of cuda_bins.py). So unless v mod 2^k < w the
// bin is v / 2^k; and otherwise it is j = v / 2^k or j - 1, as a comparison with edge j tells. The
// same holds for the nearest samples outside, of "bins" -1 and num_bins. The last bin is closed:
// its second condition is left out, and a sample with v / 2^k = num_bins is compared with the last
// edge. Mostly w is 0 or 1.
#ifndef GPUALGO_HISTOGRAM_BINS_CUH
#define GPUALGO_HISTOGRAM_BINS_CUH

#include "parts/convert.cuh"
#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

// Where a sample seems to be; `fixed` holds the bin above its fraction, if any.
template <class Fixed>
struct Position {
  Fixed fixed;
  bool is_inside;
};

template <class T>
inline constexpr bool is_float = is_narrow<T> || is_same<T, float> || is_same<T, double>;

namespace detail {

// Whether x >= edge, without rounding x.
template <class T, class E>
__device__ inline bool is_at_least(const T& x, E edge) {
  if constexpr (is_narrow<T>) {
    return is_at_least(widen(x), edge);
  } else if constexpr (is_same<T, float> && is_same<E, float>) {
    return x >= edge;
  } else if constexpr (is_same<T, int64>) {
    const double least = ceil(double(edge));
    return least < -0x1p63 || (least < 0x1p63 && x >= int64(least));
  } else if constexpr (is_same<T, uint64>) {
    const double least = ceil(double(edge));
    return least < 0 || (least < 0x1p64 && x >= uint64(least));
  } else {
    return double(x) >= double(edge);
  }
}

}  // namespace detail

// 8-bit samples; the kernel counts bit patterns.
struct ByteBins {
  static constexpr bool counts_values = true;
  static constexpr bool shares_bins = true;  // a bin may have several values

  int32 bins[256];  // of each value in ascending order; -1: none
  uint64 flip;      // a value's place in that order ^ its bit pattern

  __device__ const ByteBins& open(uint32*) const { return *this; }

  // Of a bit pattern; none is beyond all bins.
  __device__ uint32 bin_of(uint32 pattern) const { return uint32(bins[pattern ^ uint32(flip)]); }
};

// The same where values follow each other as bins do.
struct UnitBins {
  static constexpr bool counts_values = true;
  static constexpr bool shares_bins = false;

  uint32 first;  // the place in ascending order of the value of bin 0
  uint32 flip;   // a value's place in that order ^ its bit pattern

  __device__ const UnitBins& open(uint32*) const { return *this; }
  __device__ uint32 bin_of(uint32 pattern) const { return (pattern ^ flip) - first; }
};

// Even bins. F: what positions are computed in. W, E: what edges are computed in and rounded to.
// fraction_bits: k; 0 says that it is given at run time, in `shift`.
template <class T, class F, class W, class E, int fraction_bits>
struct EvenBins {
  static constexpr bool counts_values = false;
  static constexpr bool shares_bins = false;
  static constexpr bool is_integer = !is_float<T>;
  using Distance = UintFor<8 * sizeof(T)>;
  using Fixed = UintFor<8 * sizeof(F)>;
  using Place = Position<Fixed>;

  uint64 first, span;  // integers: the least sample that counts, and the greatest's distance
  double start, step, stop;
  F origin, scale, bias;  // bias: 2^(mantissa bits - k) + shift / 2^k
  Fixed base, mask, near_width;
  uint32 shift, num_bins;

  __device__ const EvenBins& open(uint32*) const { return *this; }

  __device__ Fixed whole(Fixed fixed) const {
    return fixed >> (fraction_bits ? fraction_bits : shift);
  }

  __device__ static Fixed bits(float x) { return bit_cast<uint32>(x); }
  __device__ static Fixed bits(double x) { return bit_cast<uint64>(x); }
  __device__ static float sum_down(float a, float b, float c) { return ptx::fma_rd(a, b, c); }
  __device__ static double sum_down(double a, double b, double c) { return ptx::fma_rd(a, b, c); }

  template <int items>
  __device__ void locate(const Pack<T, items>& samples, Place (&places)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i) {
      Place& place = places[i];
      if constexpr (is_integer) {
        const Distance distance = Distance(samples.items[i]) - Distance(first);
        place.is_inside = distance <= Distance(span);
        place.fixed = bits(sum_down(F(distance), scale, bias)) - base;
      } else {
        const F distance = convert<F>(samples.items[i]) - origin;
        place.fixed = bits(sum_down(distance, scale, bias)) - base;
        place.is_inside = whole(place.fixed) < num_bins;
      }
    }
  }

  // Of a sample that is inside and not near an edge.
  __device__ uint32 bin(const Place& place) const {
    const uint32 i = uint32(whole(place.fixed));
    return is_integer && i >= num_bins ? num_bins - 1 : i;
  }

  __device__ bool is_near(const Place& place) const { return (place.fixed & mask) < near_width; }

  __device__ E edge(uint32 i) const { return E(W(int32(i)) * W(step) + W(start)); }

  // The bin of any sample, or -1.
  __device__ int32 resolve(const T& x, const Place& place) const {
    const Fixed i = whole(place.fixed);
    if constexpr (is_integer) {
      if (!place.is_inside) return -1;
      if (i == 0) return 0;
      if (i >= num_bins) return int32(num_bins) - 1;
    } else {
      if (i > num_bins) return -1;
      if (i == num_bins) return is_last(x) ? int32(i) - 1 : -1;
    }
    if (!is_near(place)) return int32(i);
    return detail::is_at_least(x, edge(uint32(i))) ? int32(i) : int32(i) - 1;
  }

  __device__ bool is_last(const T& x) const { return convert<double>(x) <= double(E(W(stop))); }
};

// Bins between any edges. The host gives `thresholds[i]`, the least sample of bin i and those
// above, and `cells`: samples are cut into cells by a function that is monotone, and a search
// need only look at the thresholds in the sample's own cell.
template <class T, bool in_shared>
struct SearchBins {
  static constexpr bool counts_values = false;
  static constexpr bool shares_bins = false;
  static constexpr bool is_byte = is_same<T, int8> || is_same<T, uint8>;
  // Bytes are wider, so that what lies behind them is aligned.
  using Key = Either<is_narrow<T>, float, Either<is_byte, int16, T>>;
  using Distance = UintFor<8 * sizeof(Key)>;
  using Place = Position<uint32>;

  const Key* thresholds;
  const uint32* cells;  // how many thresholds lie in earlier cells; a last one: in all
  alignas(8) Key first;
  alignas(8) Key last;
  alignas(8) Key base;
  alignas(8) float scale;
  uint32 first_step;  // a power of two: a cell has less than twice as many thresholds
  uint32 num_thresholds, num_cells;

  // All threads call it, before a barrier; in shared memory a cell has its end beside its start.
  __device__ SearchBins open(uint32* shared) const {
    SearchBins opened = *this;
    if constexpr (in_shared) {
      Key* keys = reinterpret_cast<Key*>(shared);
      uint32* starts = reinterpret_cast<uint32*>(keys + (num_thresholds + 1) / 2 * 2);
      const Key* keys_in = ptx::assume_global(thresholds);
      const uint32* cells_in = ptx::assume_global(cells);
      for (uint32 i = threadIdx.x; i < num_thresholds; i += blockDim.x) keys[i] = keys_in[i];
      for (uint32 i = threadIdx.x; i < num_cells; i += blockDim.x) {
        starts[i] = cells_in[i] | cells_in[i + 1] << 16;
      }
      opened.thresholds = keys;
      opened.cells = starts;
    } else {
      opened.thresholds = ptx::assume_global(thresholds);
      opened.cells = ptx::assume_global(cells);
    }
    return opened;
  }

  __device__ uint32 cell_of(Key key) const {
    float distance;
    if constexpr (is_float<Key>) {
      distance = float(key - base);
    } else {
      distance = float(Distance(key) - Distance(base));
    }
    // Also right where the distance is infinite or, between infinities, NaN.
    return uint32(fminf(fmaxf(distance * scale, 0.0f), float(num_cells - 1)));
  }

  // The searches go side by side, as each waits for its loads.
  template <int items>
  __device__ void locate(const Pack<T, items>& samples, Place (&places)[items]) const {
    Key keys[items];
    uint32 begin[items], end[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      keys[i] = convert<Key>(samples.items[i]);
      const uint32 cell = cell_of(keys[i]);
      begin[i] = cells[cell];
      if constexpr (in_shared) {
        end[i] = begin[i] >> 16;
        begin[i] &= 0xffffu;
      } else {
        end[i] = cells[cell + 1];
      }
    }
#pragma unroll 1
    for (uint32 step = first_step; step > 0; step /= 2) {
#pragma unroll
      for (int i = 0; i < items; ++i) {
        const uint32 next = begin[i] + step;
        if (next <= end[i] && thresholds[next - 1] <= keys[i]) begin[i] = next;
      }
    }
#pragma unroll
    for (int i = 0; i < items; ++i) {
      places[i] = {begin[i] - 1, keys[i] >= first && keys[i] <= last};
    }
  }

  __device__ uint32 bin(const Place& place) const { return place.fixed; }
  __device__ bool is_near(const Place&) const { return false; }

  __device__ int32 resolve(const T&, const Place& place) const {
    return place.is_inside ? int32(place.fixed) : -1;
  }
};

}  // namespace gpualgo

#endif
