// The part of a long row in which the elements of some ranks must lie: by a sample, in one reading.
//
// Algorithm  Bounds from a sample (Floyd and Rivest, "Expected time bounds for selection", CACM 18,
//            1975, doi:10.1145/360680.360691). One element of each of many stretches of equal
//            length, at a place that depends on the stretch's number alone, is a sample; two of its
//            ranks, by (key, position), are bounds between which the wanted ranks lie but for one
//            case in thousands of millions. The filter reads the row, counts what comes before the
//            lower bound and keeps what lies between: positions break ties, so that equal keys make
//            it no longer. If a rank does lie outside, or more was kept than there is room for, who
//            reads the counts (top_k/select.cuh) takes the row itself.
// Bytes      sizeof(T) per element, and what is kept; launches: three.
// Storage    What is kept, and the sample: by formulas of the host's side.
// Bits       What is kept comes in any order, and is put in one by who reads it.
#ifndef GPUALGO_TOP_K_SAMPLE_CUH
#define GPUALGO_TOP_K_SAMPLE_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

struct SampleBounds {
  uint64 first_key, first_position;  // nothing before it is kept
  uint64 last_key, last_position;    // nothing behind it
  uint64 num_before, num_kept;

  // Whether the element of a rank is among those that were kept, and there was room for all.
  __device__ bool holds(int64 rank, int64 capacity) const {
    return num_kept <= uint64(capacity) && uint64(rank) >= num_before &&
           uint64(rank) - num_before < num_kept;
  }
};

struct GatherSampleParams {
  const unsigned char* row;
  unsigned char* keys;
  unsigned char* positions;
  int64 row_items;
  uint64 flip;
  uint32 sample_bits;  // 2 to the power of these are taken
};

namespace detail {

// Mixes the bits of a number: the finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014, doi:10.1145/2660193.2660195).
__device__ inline uint64 mixed(uint64 x) {
  x = (x + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace detail

// The element that is taken of a stretch of 2^b, which are as long as each other: one of `size`.
__device__ inline uint64 place_in_stretch(uint64 stretch, uint64 size, uint32 bits) {
  const uint64 offset = ptx::umulhi(detail::mixed(stretch), size);
  return (stretch * size + offset) >> bits;  // of rows of fewer than 2^(64 - b)
}

// overlaps, here and below: the kernel behind it may be launched early, and waits.
template <int block_threads, bool overlaps, class Order, class Index>
__global__ void __launch_bounds__(block_threads)
    gather_sample_kernel(const __grid_constant__ GatherSampleParams params) {
  if constexpr (overlaps) ptx::griddepcontrol_launch_dependents();
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  const uint64 stretch = uint64(blockIdx.x) * block_threads + threadIdx.x;
  if (stretch >> params.sample_bits != 0) return;
  const uint64 at = place_in_stretch(stretch, uint64(params.row_items), params.sample_bits);
  const Key key = reinterpret_cast<const Key*>(params.row)[at];
  const Ordered ordered = Order::ordered(key) ^ Ordered(params.flip);
  reinterpret_cast<Ordered*>(params.keys)[stretch] = ordered;
  reinterpret_cast<Index*>(params.positions)[stretch] = Index(at);
}

struct BoundSampleParams {
  const unsigned char* keys;
  const unsigned char* positions;
  SampleBounds* bounds;
  int64 num_samples;
  int64 first, last;  // ranks; before the first and behind the last sample: no bound
};

// Finds the bounds that two ranks of a sample are. All threads of the block call it.
template <int block_threads, class Order, class Index>
struct BoundSample {
  using Ordered = typename Order::Ordered;
  using Search = RankSearch<block_threads, Ordered, Index>;
  using Shared = typename Search::Shared;

  __device__ static void clear(SampleBounds& bounds) {  // before the barriers of a search
    if (threadIdx.x != 0) return;
    bounds.num_before = bounds.num_kept = 0;
    bounds.first_key = bounds.first_position = 0;
    bounds.last_key = bounds.last_position = ~uint64(0);
  }

  __device__ static void run(const KeptElements<Order, Index>& sample, Shared& shared, int64 first,
                             int64 last, SampleBounds& bounds) {
#pragma unroll 1
    for (int end = 0; end < 2; ++end) {
      const int64 rank = end == 0 ? first : last;
      if (!Search::agreed(rank >= 0 && rank < sample.count)) continue;
      Search search{shared, Index(rank), Index(sample.count)};
      search.find(sample, false);
      Search::for_each(sample, [&](bool is_there, Index i, Ordered key) {
        if (!is_there || !search.cut.agrees(sample, i, key)) return;
        (end == 0 ? bounds.first_key : bounds.last_key) = key;
        (end == 0 ? bounds.first_position : bounds.last_position) = sample.position(i);
      });
      ptx::syncthreads();
    }
  }
};

// A single block.
template <int block_threads, bool overlaps, class Order, class Index>
__global__ void __launch_bounds__(block_threads, 1)
    bound_sample_kernel(const __grid_constant__ BoundSampleParams params) {
  if constexpr (overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Bound = BoundSample<block_threads, Order, Index>;
  auto& shared = ptx::shared_memory<typename Bound::Shared>();
  Bound::clear(*params.bounds);
  Bound::run({params.keys, params.positions, params.num_samples}, shared, params.first, params.last,
             *params.bounds);
}

struct FilterParams {
  const unsigned char* row;
  SampleBounds* bounds;
  unsigned char* keys;
  unsigned char* positions;
  int64 row_items, capacity;
  uint64 flip;
};

template <int block_threads_, int loads_, int min_blocks_, bool overlaps_>
struct FilterPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads = loads_;  // vectors per thread
  static constexpr int min_blocks = min_blocks_;
  static constexpr bool overlaps = overlaps_;
};

template <class Policy, class Elements, class Index>
struct Filter {
  using Item = typename Elements::Item;
  using Ordered = typename Elements::Ordered;
  static constexpr int threads = Policy::block_threads, loads = Policy::loads;
  static constexpr int items = vector_bytes / int(sizeof(Item));
  static constexpr int batch = items * loads;
  static_assert(batch <= 32);

  Elements elements;
  SampleBounds* bounds;
  Ordered* keys;
  Index* positions;
  uint64 capacity;
  Ordered first_key, last_key;
  uint64 first_position, last_position;
  uint64 num_before = 0;

  __device__ Filter(const Elements& elements, SampleBounds* bounds, unsigned char* keys,
                    unsigned char* positions, int64 capacity)
      : elements(elements),
        bounds(bounds),
        keys(reinterpret_cast<Ordered*>(keys)),
        positions(reinterpret_cast<Index*>(positions)),
        capacity(uint64(capacity)),
        first_key(Ordered(bounds->first_key)),
        last_key(Ordered(bounds->last_key)),
        first_position(bounds->first_position),
        last_position(bounds->last_position) {}

  // Whether an element may be kept, going by its key; counts it if it comes before all that are.
  __device__ bool may_keep(Item item) {
    const Ordered key = elements.ordered(item);
    num_before += key < first_key;
    return Ordered(key - first_key) <= Ordered(last_key - first_key);
  }
  // Whether it is: of keys that are a bound's the position decides.
  __device__ bool keeps(Index i) {
    const Ordered key = elements.key(i);
    const uint64 position = elements.position(i);
    if (key == first_key && position < first_position) {
      ++num_before;
      return false;
    }
    return key != last_key || position <= last_position;
  }

  // Keeps those of a thread's elements whose bits are set, if they are kept; at(k): the k-th. All
  // lanes of a warp call it. It is rare enough to read keys again.
  template <class At>
  __device__ void keep(uint32 kept, At at) {
    if (!ptx::any_sync(all_lanes, kept != 0)) return;
#pragma unroll 1
    for (uint32 rest = kept; rest != 0; rest &= rest - 1) {
      if (!keeps(Index(at(ptx::ffs(rest) - 1)))) kept ^= rest & (0 - rest);
    }
    ptx::syncwarp();
    const int number = ptx::popc(kept), lane = threadIdx.x % warp_threads;
    int sum = number;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_up(sum, delta);
      if (lane >= delta) sum += other;
    }
    uint64 place = 0;
    if (lane == warp_threads - 1) {
      place = ptx::atom_add_relaxed_gpu(&bounds->num_kept, uint64(sum));
    }
    place = shuffle(place, warp_threads - 1) + uint64(sum - number);
#pragma unroll 1
    for (uint32 rest = kept; rest != 0 && place < capacity; rest &= rest - 1) {
      const Index i = Index(at(ptx::ffs(rest) - 1));
      keys[place] = elements.key(i);
      positions[place] = elements.position(i);
      ++place;
    }
    ptx::syncwarp();
  }

  // The vectors from the first that is aligned on, then the rest.
  __device__ void run() {
    const Item* all = elements.keys;
    const uint64 misaligned = reinterpret_cast<uint64>(all) % vector_bytes / sizeof(Item);
    int64 head = misaligned == 0 ? 0 : items - int64(misaligned);
    if (head > elements.count) head = elements.count;
    const int64 vectors = (elements.count - head) / items;
    const Item* body = all + head;
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
      uint32 kept = 0;
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (vector + j * threads < vectors) {
#pragma unroll
          for (int i = 0; i < items; ++i) {
            if (may_keep(packs[j].items[i])) kept |= 1u << (j * items + i);
          }
        }
      }
      keep(kept, [&](int i) { return head + (vector + i / items * threads) * items + i % items; });
    }
    if (blockIdx.x == 0) edges(head, head + vectors * items);
    finish();
  }

  // What lies before the first whole vector, and behind the last: fewer than a block has threads.
  __device__ void edges(int64 head, int64 tail) {
    const int64 i = threadIdx.x < head ? threadIdx.x : tail + threadIdx.x - head;
    const bool is_there = i < elements.count;
    const uint32 kept = is_there && may_keep(elements.keys[i]) ? 1 : 0;
    keep(kept, [&](int) { return i; });
  }

  __device__ void finish() {
    uint64 sum = num_before;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) sum += shuffle_xor(sum, delta);
    if (threadIdx.x % warp_threads == 0 && sum != 0) {
      ptx::atom_add_relaxed_gpu(&bounds->num_before, sum);
    }
  }
};

template <class Policy, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    filter_kernel(const __grid_constant__ FilterParams params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Elements = RowElements<Order, Index>;
  const Elements row{reinterpret_cast<const typename Order::Key*>(params.row), params.row_items,
                     typename Order::Ordered(params.flip)};
  Filter<Policy, Elements, Index>(row, params.bounds, params.keys, params.positions,
                                  params.capacity)
      .run();
}

}  // namespace gpualgo

#endif
