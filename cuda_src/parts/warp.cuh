// Steps of a warp, or of an aligned group of `width` of its lanes. All keep element order.
#ifndef GPUALGO_PARTS_WARP_CUH
#define GPUALGO_PARTS_WARP_CUH

#include "parts/intrinsics.cuh"
#include "parts/types.cuh"

namespace gpualgo {

constexpr int warp_threads = 32;
constexpr uint32 all_lanes = 0xffffffffu;

// Where an element lies in shared memory of which one in 32 is left out: so lanes that read at
// equal distances meet all banks.
__device__ constexpr uint32 padded(uint32 place) { return place + place / warp_threads; }

namespace detail {

// Applies a 32-bit shuffle to each word of a value.
template <class T, class Shuffle>
__device__ inline T shuffle_words(const T& value, Shuffle shuffle) {
  constexpr int words = (sizeof(T) + 3) / 4;
  uint32 buffer[words] = {};
  memcpy(buffer, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) buffer[i] = shuffle(buffer[i]);
  T result;
  memcpy(&result, buffer, sizeof(T));
  return result;
}

}  // namespace detail

template <class T>
__device__ inline T shuffle_xor(const T& value, int mask) {
  return detail::shuffle_words(
      value, [=](uint32 word) { return ptx::shfl_xor_sync(all_lanes, word, mask); });
}

template <class T>
__device__ inline T shuffle_down(const T& value, int delta) {
  return detail::shuffle_words(
      value, [=](uint32 word) { return ptx::shfl_down_sync(all_lanes, word, delta); });
}

template <class T>
__device__ inline T shuffle_up(const T& value, int delta) {
  return detail::shuffle_words(
      value, [=](uint32 word) { return ptx::shfl_up_sync(all_lanes, word, delta); });
}

// The value of one lane, for all.
template <class T>
__device__ inline T shuffle(const T& value, int lane) {
  return detail::shuffle_words(value,
                               [=](uint32 word) { return ptx::shfl_sync(all_lanes, word, lane); });
}

// The sum, and the largest, of a warp's values, for all of its lanes. has_redux: from sm_80 on.
template <bool has_redux, class Count>
__device__ inline Count warp_sum(Count value) {
  if constexpr (has_redux && is_same<Count, uint32>) return ptx::redux_sync_add(value);
#pragma unroll
  for (int delta = 1; delta < warp_threads; delta *= 2) value += shuffle_xor(value, delta);
  return value;
}
template <bool has_redux, class Count>
__device__ inline Count warp_max(Count value) {
  if constexpr (has_redux && is_same<Count, uint32>) return ptx::redux_sync_max(value);
#pragma unroll
  for (int delta = 1; delta < warp_threads; delta *= 2) {
    const Count other = shuffle_xor(value, delta);
    value = value < other ? other : value;
  }
  return value;
}

// The sum of the values of the lanes up to this one, of `width` lanes at least.
template <int width = warp_threads, class Count>
__device__ inline Count sum_up_to(Count value) {
  const int lane = threadIdx.x % warp_threads;
#pragma unroll
  for (int delta = 1; delta < width; delta *= 2) {
    const Count other = shuffle_up(value, delta);
    if (lane >= delta) value += other;
  }
  return value;
}

// Combines this lane's value with its partner's, the lower lane's first.
template <class Op, class T>
__device__ inline T combine_ordered(const T& mine, const T& other, bool upper) {
  T first = upper ? other : mine;
  T second = upper ? mine : other;
  return Op::apply(first, second);
}

// Reduces values[0] of all lanes, then values[1] of all lanes, and so on; every lane of the
// group gets the result. While several values are left, two lanes share them out, so that
// `count` values cost about count + 2 log2(width) exchanges instead of count log2(width).
template <int width, class Op, class T, int count>
__device__ inline T reduce_group(T (&values)[count]) {
  static_assert((count & (count - 1)) == 0 && count <= width);
  const int lane = threadIdx.x % warp_threads;
  int mask = 1;
#pragma unroll
  for (int half = count / 2; half >= 1; half /= 2, mask *= 2) {
    const bool upper = lane & mask;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      // Values, not places of the array: it stays in registers.
      const T low = values[i], high = values[i + half];
      const T keep = upper ? high : low, send = upper ? low : high;
      values[i] = combine_ordered<Op>(keep, shuffle_xor(send, mask), upper);
    }
  }
  // Each lane now holds one of the `count` values, over the lanes that it met.
#pragma unroll
  for (; mask < width; mask *= 2) {
    values[0] = combine_ordered<Op>(values[0], shuffle_xor(values[0], mask), lane & mask);
  }
  // The lane's lowest bit chose the upper half of the values: join neighbours last bit first.
#pragma unroll
  for (mask = count / 2; mask >= 1; mask /= 2) {
    values[0] = combine_ordered<Op>(values[0], shuffle_xor(values[0], mask), lane & mask);
  }
  return values[0];
}

// Replaces each lane's value by the fold of its group's up to its own. Only the group's first
// `valid` lanes hold one; no other lane's reaches the operator.
template <int width, class Op, class T>
__device__ inline T scan_group(T value, int valid) {
  const int lane = threadIdx.x % width;
#pragma unroll
  for (int delta = 1; delta < width; delta *= 2) {
    T other = shuffle_up(value, delta);
    if (lane >= delta && lane < valid) value = Op::apply(other, value);
  }
  return value;
}

// Reduces the values of the group's first `valid` lanes (at least one); its lane 0 gets the
// result. No other lane's value reaches the operator.
template <int width, class Op, class T>
__device__ inline T reduce_group_partial(T value, int valid) {
  const int lane = threadIdx.x % width;
#pragma unroll
  for (int delta = 1; delta < width; delta *= 2) {
    T other = shuffle_down(value, delta);
    // A lane is worth reading if it starts a run of its own that holds a valid lane.
    if (lane % (2 * delta) == 0 && lane + delta < valid) value = Op::apply(value, other);
  }
  return value;
}

}  // namespace gpualgo

#endif
