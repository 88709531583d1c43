// Ragged rows: where segments of elements begin and end, and a warp's fold of one.
//
// Offsets are of any integer type and stride. Whatever they hold, what is read of them lies in
// [0, num_items], and a pair that falls is an empty segment, as Python's slices have it.
#ifndef GPUALGO_PARTS_RAGGED_CUH
#define GPUALGO_PARTS_RAGGED_CUH

#include "parts/element.cuh"
#include "parts/fold.cuh"
#include "parts/intrinsics.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

struct Segment {
  int64 begin, count;
};

template <class Index>
struct Offsets {
  const unsigned char* first;
  int64 step;  // bytes from one to the next
  int64 num_items;

  __device__ int64 at(int64 i) const {
    const Index offset = load_item<Index>(first + i * step);
    if constexpr (Index(-1) < Index(0)) {
      if (offset < Index(0)) return 0;
    }
    return uint64(offset) > uint64(num_items) ? num_items : int64(offset);
  }
  __device__ Segment segment(int64 i) const {
    const int64 begin = at(i), end = at(i + 1);
    return {begin, end > begin ? end - begin : 0};
  }
};

// The last of the segments that begin at `place` or before it, by one thread, from one on that
// begins no later: mostly the next begins behind. Offsets that fall give some segment.
template <class Index>
__device__ inline int64 segment_from(int64 low, const Offsets<Index>& offsets, int64 count,
                                     int64 place) {
  if (uint64(low) >= uint64(count)) low = count - 1;
  int64 step = 1;
#pragma unroll 1
  while (step < count - low && offsets.at(low + step) <= place) {
    low += step;
    step *= 2;
  }
  int64 end = step < count - low ? low + step : count;
#pragma unroll 1
  while (end - low > 1) {
    const int64 middle = (low + end) / 2;
    (offsets.at(middle) <= place ? low : end) = middle;
  }
  return low;
}

// Folds the elements load(begin), …, load(begin + count - 1), of which there is one at least, by a
// warp, in order unless the operator commutes; lane 0 gets the result. Tiles of `rows` times 32 are
// loaded before any is combined, `ahead` of them where there are so many; of an operator that does
// not commute two at most. Which are combined first depends on count and rows alone.
template <int rows, int ahead, class Op, class A, class Load>
__device__ inline A fold_range(int64 begin, int64 count, Load load) {
  constexpr int tile = rows * warp_threads;
  const int lane = threadIdx.x % warp_threads;
  Running<Op, A> total{A{}};
  int64 done = 0;
  const auto append = [&](auto number) {
    constexpr int tiles = decltype(number)::value;
#pragma unroll 1
    for (; count - done >= tiles * tile; done += tiles * tile) {
      A values[tiles][rows];
#pragma unroll
      for (int i = 0; i < tiles * rows; ++i) {
        values[i / rows][i % rows] = load(begin + done + lane + i * warp_threads);
      }
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        if constexpr (Op::commutative) {
          total.append(fold<Op, 0, rows>(values[i]));
        } else {
          total.append(reduce_group<warp_threads, Op>(values[i]));
        }
      }
    }
  };
  if constexpr (Op::commutative && ahead > 1) append(detail::Index<ahead>{});
  if constexpr (!Op::commutative && ahead > 1) {
    // One tile is under way while the one before is combined; more would take too many registers.
    A values[rows], next[rows];
    int64 rest = count, place = begin + lane;
    const auto bring = [&](A(&to)[rows]) {
#pragma unroll
      for (int k = 0; k < rows; ++k) to[k] = load(place + k * warp_threads);
    };
    if (rest >= tile) bring(next);
#pragma unroll 1
    for (; rest >= tile; rest -= tile) {
      place += tile;
#pragma unroll
      for (int k = 0; k < rows; ++k) assign(values[k], next[k]);
      if (rest >= 2 * tile) bring(next);
      total.append(reduce_group<warp_threads, Op>(values));
    }
    done = count - rest;
  } else {
    append(detail::Index<1>{});
  }
  if (done < count) {
    const int64 rest = count - done, first = begin + done + lane;
    A values[rows];
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      values[k] = A{};
      if (k * warp_threads + lane < rest) values[k] = load(first + k * warp_threads);
    }
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      const int64 valid = rest - k * warp_threads;
      if constexpr (Op::commutative) {
        if (lane < valid) total.append(values[k]);
      } else if (valid > 0) {
        const int active = valid < warp_threads ? int(valid) : warp_threads;
        const A row = reduce_group_partial<warp_threads, Op>(values[k], active);
        if (lane == 0) total.append(row);
      }
    }
  }
  if constexpr (Op::commutative) {
    const int active = count < warp_threads ? int(count) : warp_threads;
    return reduce_group_partial<warp_threads, Op>(total.total, active);
  } else {
    return total.total;
  }
}

}  // namespace gpualgo

#endif
