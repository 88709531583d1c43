// The first few elements of each of many short rows, by (key, position): a warp for each row.
//
// Algorithm  A lane holds every 32nd key of the row in registers, and knows the first of them. Of
//            these the k-th is a bound, as k elements come up to it: whatever does is brought
//            together, one to a lane, and sorted by a bitonic network. Where that is more than
//            there are lanes, as always of many k, the warp finds the first of the lanes' firsts,
//            and the lane that held it finds its next one: k times.
// Bytes      sizeof(T) per element, and the results; launches: one; temporary storage: none.
// Bits       Elements are moved as they are, and their order is total.
#ifndef GPUALGO_TOP_K_ROWS_CUH
#define GPUALGO_TOP_K_ROWS_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"
#include "radix_sort/keys.cuh"

namespace gpualgo {

struct ShortRowsParams {
  const unsigned char* rows;
  unsigned char* values;
  unsigned char* positions;  // null: the last of the first elements alone is wanted, by value
  int64 num_rows, row_items;
  int64 count;  // first elements of a row, at most a warp's lanes
  uint64 flip;
};

constexpr int most_bounded = 16;  // of more, what comes up to the bound is mostly too much

// Sorts the pairs of the lanes, which are different.
template <class Ordered>
__device__ inline void sort_lanes(Ordered& key, uint32& position) {
  const int lane = threadIdx.x % warp_threads;
#pragma unroll
  for (int width = 2; width <= warp_threads; width *= 2) {
#pragma unroll
    for (int stride = width / 2; stride > 0; stride /= 2) {
      const Ordered other = shuffle_xor(key, stride);
      const uint32 other_position = shuffle_xor(position, stride);
      const bool is_behind = other < key || (other == key && other_position < position);
      const bool wants_first = ((lane & stride) == 0) == ((lane & width) == 0);
      if (is_behind == wants_first) {
        key = other;
        position = other_position;
      }
    }
  }
}

// items: keys of a lane.
template <int items, class Order>
struct ShortRow {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;

  Ordered keys[items];
  Ordered first;    // of the lane's keys that are left
  uint32 first_at;  // which of them it is
  uint32 length;    // of the row

  __device__ void load(const Key* row, Ordered flip) {
    const int lane = threadIdx.x % warp_threads;
    Key held[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      held[i] = Key{};
      if (uint32(i * warp_threads + lane) < length) held[i] = row[i * warp_threads + lane];
    }
    first = ~Ordered(0);  // where there is no element: behind all others, by its position
    first_at = items;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const bool is_there = uint32(i * warp_threads + lane) < length;
      keys[i] = is_there ? Ordered(Order::ordered(held[i]) ^ flip) : ~Ordered(0);
      if (is_there && (first_at == items || keys[i] < first)) {
        first = keys[i];
        first_at = i;
      }
    }
  }

  // Finds the row's first `count` elements at once, in order, one to a lane; false: there are more
  // that may be such than lanes. places: a word for each lane, of the warp alone.
  __device__ bool find(const Key* row, Ordered flip, int count, uint32* places, uint32& position) {
    const int lane = threadIdx.x % warp_threads;
    Ordered key = first;
    position = first_at * warp_threads + lane;
    sort_lanes(key, position);
    const Ordered last = shuffle(key, count - 1);
    const uint32 last_position = shuffle(position, count - 1);
    uint32 taken = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const bool is_last = keys[i] == last && uint32(i * warp_threads + lane) <= last_position;
      if (keys[i] < last || is_last) taken |= 1u << i;
    }
    int end = ptx::popc(taken);
    const int number = end;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_up(end, delta);
      if (lane >= delta) end += other;
    }
    const int total = shuffle(end, warp_threads - 1);
    if (ptx::any_sync(all_lanes, total > warp_threads)) return false;
    uint32* place = places + end - number;
#pragma unroll 1
    for (; taken != 0; taken &= taken - 1) {
      *place++ = (ptx::ffs(taken) - 1) * warp_threads + lane;
    }
    ptx::syncwarp();
    position = length + lane;  // behind all others
    key = ~Ordered(0);
    if (lane < total) {
      position = places[lane];
      key = Order::ordered(row[position]) ^ flip;
    }
    ptx::syncwarp();
    sort_lanes(key, position);
    return true;
  }

  // Finds the lane's first key behind the one that it had.
  __device__ void next() {
    const int lane = threadIdx.x % warp_threads;
    const Ordered last = first;
    const uint32 last_at = first_at;
    first = ~Ordered(0);
    first_at = items;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const bool is_left = keys[i] > last || (keys[i] == last && uint32(i) > last_at);
      const bool is_there = uint32(i * warp_threads + lane) < length;
      if (is_left && is_there && (first_at == items || keys[i] < first)) {
        first = keys[i];
        first_at = i;
      }
    }
  }

  // Takes the row's first element that is left, and returns its position, the same in all lanes.
  __device__ uint32 take() {
    const int lane = threadIdx.x % warp_threads;
    Ordered key = first;
    uint32 position = first_at * warp_threads + lane;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const Ordered other = shuffle_xor(key, delta);
      const uint32 other_position = shuffle_xor(position, delta);
      if (other < key || (other == key && other_position < position)) {
        key = other;
        position = other_position;
      }
    }
    if (int(position % warp_threads) == lane) next();
    ptx::syncwarp();
    return position;
  }
};

template <int block_threads, int items, class Order>
__global__ void __launch_bounds__(block_threads)
    short_rows_kernel(const __grid_constant__ ShortRowsParams params) {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  const int lane = threadIdx.x % warp_threads;
  const int64 number =
      int64(blockIdx.x) * (block_threads / warp_threads) + threadIdx.x / warp_threads;
  if (number >= params.num_rows) return;
  const Key* row = reinterpret_cast<const Key*>(params.rows) + number * params.row_items;
  ShortRow<items, Order> held;
  held.length = uint32(params.row_items);
  held.load(row, Ordered(params.flip));
  struct Shared {
    uint32 places[block_threads / warp_threads][warp_threads];
  };
  auto& shared = ptx::shared_memory<Shared>();
  const int count = int(params.count);
  uint32 mine = 0;
  const bool is_found =
      ptx::any_sync(all_lanes, count <= most_bounded) &&
      held.find(row, Ordered(params.flip), count, shared.places[threadIdx.x / warp_threads], mine);
  if (!is_found) {
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const uint32 position = held.take();
      if (lane == i) mine = position;
    }
  }
  Key* values = reinterpret_cast<Key*>(params.values);
  if (params.positions == nullptr) {
    if (lane == count - 1) values[number] = row[mine];
  } else if (lane < count) {
    values[number * count + lane] = row[mine];
    reinterpret_cast<int64*>(params.positions)[number * count + lane] = mine;
  }
}

}  // namespace gpualgo

#endif
