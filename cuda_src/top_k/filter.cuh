// The elements of a long row between bounds (top_k/sample.cuh), in one reading.
//
// Algorithm  The row is read once for up to 8 pairs of bounds: the filter counts what comes before
//            each and keeps what lies between, in a list for each pair; positions break ties, so
//            that equal keys make it no longer. A warp gathers what it keeps in shared memory, and
//            takes room for all of it at once.
// Bytes      sizeof(Key) per element, and what is kept; launches: one.
// Storage    What is kept: by formulas of the host's side.
// Bits       What is kept comes in any order, and is put in one by who reads it.
#ifndef GPUALGO_TOP_K_FILTER_CUH
#define GPUALGO_TOP_K_FILTER_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "top_k/sample.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

struct FilterParams {
  const unsigned char* row;
  SampleBounds* bounds;
  unsigned char* keys;
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
    Ordered keys[threads / warp_threads][staged];
    Index positions[threads / warp_threads][staged];
  };

  const FilterParams& params;
  Ordered* keys;  // gathered by the warp
  Index* positions;
  RowElements<Order, Index> row;
  Ordered first_keys[lists], spans[lists];
  uint32 num_before[lists] = {};
  int num_staged = 0;  // the same in all lanes
  int lane = threadIdx.x % warp_threads;

  __device__ Filter(const FilterParams& params, Shared& shared)
      : params(params),
        keys(shared.keys[threadIdx.x / warp_threads]),
        positions(shared.positions[threadIdx.x / warp_threads]),
        row{reinterpret_cast<const Item*>(params.row), params.row_items, Ordered(params.flip)} {
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      first_keys[l] = Ordered(params.bounds[l].first_key);
      spans[l] = Ordered(params.bounds[l].last_key) - first_keys[l];
    }
  }

  // Whether an element may be kept, going by its key; counts it if it comes before all that are.
  // is_edge: keys that are a bound's are kept if their position says so.
  __device__ bool may_keep(Ordered key, bool& is_edge) {
    bool is_kept = false;
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      const Ordered distance = key - first_keys[l];
      num_before[l] += key < first_keys[l];
      is_kept = is_kept || distance <= spans[l];
      is_edge = is_edge || distance == 0 || distance == spans[l];
    }
    return is_kept;
  }
  // Whether it is, if its key is a bound's: rare enough to read bounds again.
  __device__ bool keeps(Ordered key, Index position) {
    bool is_kept = false;
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      const SampleBounds& bounds = params.bounds[l];
      if (Ordered(key - first_keys[l]) > spans[l]) continue;
      if (key == first_keys[l] && position < bounds.first_position) {
        ++num_before[l];
      } else if (key != Ordered(bounds.last_key) || position <= bounds.last_position) {
        is_kept = true;
      }
    }
    return is_kept;
  }

  // Keeps those of a thread's elements whose bits are set: at(k): where the k-th lies, key(k): its
  // key, k a constant. All lanes of a warp call it.
  template <class At, class Key>
  __device__ void keep(uint32 kept, uint32 edges, At at, Key key) {
    if (!ptx::any_sync(all_lanes, kept != 0)) return;
    if (ptx::any_sync(all_lanes, (kept & edges) != 0)) {
#pragma unroll
      for (int k = 0; k < batch; ++k) {
        if (((kept & edges) >> k & 1) != 0 && !keeps(key(k), Index(at(k)))) kept ^= 1u << k;
      }
      ptx::syncwarp();
    }
    const int number = ptx::popc(kept);
    int sum = number;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_up(sum, delta);
      if (lane >= delta) sum += other;
    }
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
      keys[place] = key(k);
      positions[place] = Index(at(k));
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
        const Index i = Index(at(k));
        const int place = num_staged + ptx::popc(lanes & ptx::lanemask_le()) - 1;
        keys[place] = row.key(i);
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
      const Ordered last = first_keys[l] + spans[l];
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
        const int list = i < num_staged ? list_of(keys[i], positions[i]) : lists;
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
          reinterpret_cast<Ordered*>(params.keys)[to] = keys[i];
          reinterpret_cast<Index*>(params.positions)[to] = positions[i];
        }
        if (lane == l) place += ptx::popc(lanes);
      }
    }
    ptx::syncwarp();
    num_staged = 0;
  }

  // The vectors from the first that is aligned on, then the rest.
  __device__ void run() {
    const uint64 misaligned = reinterpret_cast<uint64>(row.keys) % vector_bytes / sizeof(Item);
    int64 head = misaligned == 0 ? 0 : items - int64(misaligned);
    if (head > row.count) head = row.count;
    const int64 vectors = (row.count - head) / items;
    const Item* body = row.keys + head;
    const int64 step = int64(gridDim.x) * threads * loads;
#pragma unroll 1
    for (int64 begin = int64(blockIdx.x) * threads * loads;
         ptx::any_sync(all_lanes, begin < vectors); begin += step) {
      const int64 vector = begin + threadIdx.x;
      Pack<Item, items> packs[loads];
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (vector + j * threads < vectors) {
          packs[j] = load_pack<Item, items>(body + (vector + j * threads) * items);
        }
      }
      uint32 kept = 0, edges = 0;
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (vector + j * threads < vectors) {
#pragma unroll
          for (int i = 0; i < items; ++i) {
            bool is_edge = false;
            if (may_keep(row.ordered(packs[j].items[i]), is_edge)) kept |= 1u << (j * items + i);
            if (is_edge) edges |= 1u << (j * items + i);
          }
        }
      }
      keep(
          kept, edges,
          [&](int k) { return head + (vector + k / items * threads) * items + k % items; },
          [&](int k) { return row.ordered(packs[k / items].items[k % items]); });
    }
    if (blockIdx.x == 0) ends(head, head + vectors * items);
    flush();
    finish();
  }

  // What lies before the first whole vector, and behind the last: fewer than a block has threads.
  __device__ void ends(int64 head, int64 tail) {
    const int64 i = threadIdx.x < head ? threadIdx.x : tail + threadIdx.x - head;
    const bool is_there = i < row.count;
    bool is_edge = false, is_kept = is_there && may_keep(row.key(Index(i)), is_edge);
    if (is_kept && is_edge) is_kept = keeps(row.key(Index(i)), Index(i));
    keep_each(is_kept, [&](int) { return i; });
  }

  __device__ void finish() {
#pragma unroll
    for (int l = 0; l < lists; ++l) {
      uint32 sum = num_before[l];
#pragma unroll
      for (int delta = 1; delta < warp_threads; delta *= 2) sum += shuffle_xor(sum, delta);
      if (lane == 0 && sum != 0) {
        ptx::atom_add_relaxed_gpu(&params.bounds[l].num_before, uint64(sum));
      }
    }
  }
};

template <class Policy, int lists, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    filter_kernel(const __grid_constant__ FilterParams params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Work = Filter<Policy, lists, Order, Index>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  Work(params, shared).run();
}

}  // namespace gpualgo

#endif
