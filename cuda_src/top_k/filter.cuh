// The elements of a long row between bounds (top_k/sample.cuh), in one reading.
//
// Algorithm  The row is read once for up to 8 pairs of bounds: the filter counts what comes before
//            each and keeps what lies between, in a list for each pair; positions break ties, so
//            that equal keys make it no longer. They are compared only in tiles around a bound's
//            position. A warp gathers what it keeps in shared memory, and takes room for all of it
//            at once.
// Bytes      sizeof(Key) per element, and what is kept; launches: one.
// Storage    What is kept: by formulas of the host's side.
// Bits       What is kept comes in any order, and is put in one by who reads it.
#ifndef GPUALGO_TOP_K_FILTER_CUH
#define GPUALGO_TOP_K_FILTER_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"
#include "top_k/sample.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

struct FilterParams {
  const unsigned char* row;
  SampleBounds* bounds;
  unsigned char* items;
  unsigned char* positions;
  int64 row_items;
  uint64 flip;
  int64 begin[most_ranks], capacity[most_ranks];  // where lists lie there, and room in them
};

template <int block_threads_, int loads_, int staged_, int min_blocks_, bool overlaps_>
struct FilterPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads = loads_;    // vectors per thread
  static constexpr int staged = staged_;  // elements that a warp gathers
  static constexpr int min_blocks = min_blocks_;
  static constexpr bool overlaps = overlaps_;
};

template <class Policy, int lists, class Order, class Index>
struct Filter {
  using Item = typename Order::Key;
  using Ordered = typename Order::Ordered;
  static constexpr int threads = Policy::block_threads, loads = Policy::loads;
  static constexpr int staged = Policy::staged;
  static constexpr int items = vector_bytes / int(sizeof(Item));
  static constexpr int batch = items * loads;
  static_assert(batch <= 32 && staged >= warp_threads && staged <= 8 * warp_threads);
  static_assert(lists <= most_ranks && most_ranks < 16);  // 4 bits tell which

  struct Shared {
    Item items[threads / warp_threads][staged];
    Index positions[threads / warp_threads][staged];
  };

  const FilterParams& params;
  Item* kept_items;  // gathered by the warp
  Index* positions;
  RowElements<Order, Index> row;
  Ordered first_keys[lists] = {}, num_keys[lists] = {};  // of what may be kept of a tile
  bool may_keep_all = false;
  uint32 minus_before[lists] = {};  // of what comes before all that is kept: 2^32 less the number
  int num_staged = 0;               // the same in all lanes
  int lane = threadIdx.x % warp_threads;

  __device__ Filter(const FilterParams& params, Shared& shared)
      : params(params),
        kept_items(shared.items[threadIdx.x / warp_threads]),
        positions(shared.positions[threadIdx.x / warp_threads]),
        row{reinterpret_cast<const Item*>(params.row), params.row_items, Ordered(params.flip)} {}

  // Sets the keys that may be kept of a tile. Returns whether positions within it matter.
  __device__ bool set_keys(Index first, Index last) {
    bool is_edge = false;
    may_keep_all = false;
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      const SampleBounds& bounds = params.bounds[l];
      const Ordered first_key = Ordered(bounds.first_key), last_key = Ordered(bounds.last_key);
      const Index begin = Index(bounds.first_position), end = Index(bounds.last_position);
      const bool is_before = last < begin && Ordered(~first_key) != 0;
      const bool is_behind = first > end && last_key != 0;
      first_keys[l] = first_key + is_before;
      num_keys[l] = last_key - is_behind - first_keys[l] + 1;  // 0: none, or all there are
      may_keep_all = may_keep_all || (first_keys[l] == 0 && Ordered(~last_key) == 0 && !is_behind);
      is_edge = is_edge || (!is_before && first < begin) || (!is_behind && last > end);
    }
    return is_edge || may_keep_all;
  }
  // Whether an element is kept, going by its key; counts it if it comes before all that are.
  __device__ bool may_keep(Ordered key) {
    bool is_kept = may_keep_all;
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      is_kept |= ptx::sub_borrow(key, first_keys[l], minus_before[l]) < num_keys[l];
    }
    return is_kept;
  }
  // Whether it is, where positions matter.
  __device__ bool keeps(Ordered key, Index position) {
    bool is_kept = false;
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      const SampleBounds& bounds = params.bounds[l];
      if (key < first_keys[l] || key > Ordered(bounds.last_key)) continue;
      if (key == Ordered(bounds.first_key) && position < bounds.first_position) {
        --minus_before[l];
      } else if (key != Ordered(bounds.last_key) || position <= bounds.last_position) {
        is_kept = true;
      }
    }
    return is_kept;
  }

  // All lanes keep the elements whose bits are set: the k-th, a constant, is item(k), lies at(k).
  template <class At, class Get>
  __device__ void keep(uint32 kept, bool is_edge, At at, Get item) {
    if (!ptx::any_sync(all_lanes, kept != 0)) return;
    if (is_edge) {
#pragma unroll
      for (int k = 0; k < batch; ++k) {
        if ((kept >> k & 1) != 0 && !keeps(row.ordered(item(k)), at(k))) kept ^= 1u << k;
      }
      ptx::syncwarp();
    }
    const int number = ptx::popc(kept), sum = sum_up_to(number);
    const int total = shuffle(sum, warp_threads - 1);
    if (num_staged + total > staged) flush();
    if (total > staged) {
      keep_each(kept, at);
      return;
    }
    int place = num_staged + sum - number;
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      if ((kept >> k & 1) == 0) continue;
      kept_items[place] = item(k);
      positions[place] = at(k);
      ++place;
    }
    num_staged += total;
  }

  // The same, one of each lane at a time: where a warp has more than it can gather.
  template <class At>
  __device__ void keep_each(uint32 kept, At at) {
    uint32 bits = kept;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) bits |= shuffle_xor(bits, delta);
#pragma unroll 1
    for (; bits != 0; bits &= bits - 1) {
      const int k = ptx::ffs(bits) - 1;
      const bool is_kept = (kept >> k & 1) != 0;
      const uint32 lanes = ptx::ballot_sync(all_lanes, is_kept);
      if (num_staged + ptx::popc(lanes) > staged) flush();
      if (is_kept) {
        const Index i = at(k);
        const int place = num_staged + ptx::popc(lanes & ptx::lanemask_le()) - 1;
        kept_items[place] = row.keys[i];
        positions[place] = i;
      }
      num_staged += ptx::popc(lanes);
    }
  }

  // The list of an element that is kept.
  __device__ int list_of(Ordered key, Index position) const {
    int list = 0;
#pragma unroll
    for (int l = 0; l + 1 < lists; ++l) {
      const Ordered last = Ordered(params.bounds[l].last_key);
      if (key > last || (key == last && position > params.bounds[l].last_position)) list = l + 1;
    }
    return list;
  }

  // Brings what the warp has gathered to the lists: counts, takes room, then writes.
  __device__ void flush() {
    ptx::syncwarp();
    uint32 found = 0;                             // the lists of a lane's elements
    uint32 number = lists == 1 ? num_staged : 0;  // of lane l: of list l
    if constexpr (lists > 1) {
#pragma unroll 1
      for (int begin = 0; begin < num_staged; begin += warp_threads) {
        const int i = begin + lane;
        const int list = i < num_staged ? list_of(row.ordered(kept_items[i]), positions[i]) : lists;
        found |= uint32(list) << begin / 8;
#pragma unroll
        for (int l = 0; l < lists; ++l) {
          const int count = ptx::popc(ptx::ballot_sync(all_lanes, list == l));
          if (lane == l) number += count;
        }
      }
    }
    uint64 place = 0;
    if (lane < lists && number != 0) {
      place = ptx::atom_add_relaxed_gpu(&params.bounds[lane].num_kept, uint64(number));
    }
#pragma unroll 1
    for (int begin = 0; begin < num_staged; begin += warp_threads) {
      const int i = begin + lane;
      const int list = i >= num_staged ? lists : lists == 1 ? 0 : int(found >> begin / 8 & 15);
#pragma unroll
      for (int l = 0; l < lists; ++l) {
        const uint32 lanes = ptx::ballot_sync(all_lanes, list == l);
        const uint64 at = shuffle(place, l) + ptx::popc(lanes & ptx::lanemask_le()) - 1;
        if (list == l && at < uint64(params.capacity[l])) {
          const int64 to = params.begin[l] + int64(at);
          reinterpret_cast<Item*>(params.items)[to] = kept_items[i];
          reinterpret_cast<Index*>(params.positions)[to] = positions[i];
        }
        if (lane == l) place += ptx::popc(lanes);
      }
    }
    ptx::syncwarp();
    num_staged = 0;
  }

  // Whole vectors, then the rest. The first vectors are read before the bounds are there.
  __device__ void run() {
    const uint64 misaligned = reinterpret_cast<uint64>(row.keys) % vector_bytes / sizeof(Item);
    Index head = misaligned == 0 ? 0 : items - Index(misaligned);
    if (head > row.count) head = Index(row.count);
    const Index vectors = (Index(row.count) - head) / items;
    const Item* body = row.keys + head;
    constexpr Index tile = threads * loads;
    Index begin = blockIdx.x * tile;
    Pack<Item, items> packs[loads];
    const auto load = [&] {
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        const Index vector = begin + threadIdx.x + j * threads;
        if (vector < vectors) packs[j] = load_pack<Item, items>(body + vector * items);
      }
    };
    load();
    if constexpr (Policy::overlaps) ptx::griddepcontrol_wait();
#pragma unroll 1
    while (ptx::any_sync(all_lanes, begin < vectors)) {
      const Index vector = begin + threadIdx.x;
      const Index end = vectors - begin < tile ? vectors : begin + tile;
      const bool is_edge = set_keys(head + begin * items, head + end * items - 1);
      uint32 kept = 0;
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (vector + j * threads < vectors) {
#pragma unroll
          for (int i = 0; i < items; ++i) {
            if (may_keep(row.ordered(packs[j].items[i]))) kept |= 1u << (j * items + i);
          }
        }
      }
      keep(
          kept, is_edge,
          [&](int k) { return head + (vector + k / items * threads) * items + k % items; },
          [&](int k) { return packs[k / items].items[k % items]; });
      begin += gridDim.x * tile;  // fewer than 2^32, as a vector has two items or more
      load();
    }
    if (blockIdx.x == 0) ends(head, head + vectors * items);
    flush();
    finish();
  }

  // What lies before the first whole vector, and behind the last: fewer than a block has threads.
  __device__ void ends(Index head, Index tail) {
    const Index i = threadIdx.x < head ? threadIdx.x : tail + (threadIdx.x - head);
    const bool is_there = i < row.count;
    set_keys(0, ~Index(0));
    bool is_kept = is_there && may_keep(row.key(i));
    if (is_kept) is_kept = keeps(row.key(i), i);
    keep_each(is_kept, [&](int) { return i; });
  }

  __device__ void finish() {
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      const uint32 sum = warp_sum<false>(0 - minus_before[l]);
      if (lane == 0 && sum != 0) {
        ptx::atom_add_relaxed_gpu(&params.bounds[l].num_before, uint64(sum));
      }
    }
  }
};

template <class Policy, int lists, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    filter_kernel(const __grid_constant__ FilterParams params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  using Work = Filter<Policy, lists, Order, Index>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  Work(params, shared).run();
}

}  // namespace gpualgo

#endif
