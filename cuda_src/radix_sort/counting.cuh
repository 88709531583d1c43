// Counting sort of 8- and 16-bit keys without values: output = each key as often as it occurs.
//
// Algorithm  counting_sort_count_kernel counts the keys as a histogram with a bin for each value;
//            the last block to arrive turns the counts into the places where keys start, in the
//            order wanted. counting_sort_fill_kernel cuts the output into tiles; a block looks up
//            which keys its tile holds, and writes them.
// Bytes      2 sizeof(Key) per key. Launches: two. Temporary storage: a count and an offset for
//            each of the 2^8 or 2^16 values.
// Equal keys of integers are the same bits, so that the sort is stable. In place is safe: the first
// kernel reads the last key before the second writes the first.
#ifndef GPUALGO_RADIX_SORT_COUNTING_CUH
#define GPUALGO_RADIX_SORT_COUNTING_CUH

#include "histogram/kernel.cuh"  // its tables and count_flat: a count of keys is a histogram
#include "parts/ptx.cuh"

namespace gpualgo {

// Every value has a bin. A value's rank in the order wanted is its bits ^ flip.
template <class Key>
struct KeyBins {
  static constexpr bool counts_values = true;
  using Place = Position<uint32>;

  template <int items>
  __device__ void locate(const Pack<Key, items>& keys, Place (&places)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i) places[i] = {keys.items[i], true};
  }
  __device__ uint32 bin(const Place& place) const { return place.fixed; }
  __device__ bool is_near(const Place&) const { return false; }
  __device__ int32 resolve(const Key& key, const Place&) const { return key; }
};

template <class Key>
inline constexpr int num_ranks = 1 << (8 * sizeof(Key));

struct CountingSortCount {
  const unsigned char* input;
  unsigned char* counters;  // one for each value, as wide as an offset; all zero before, and
                            // after if keys have 8 bits
  unsigned char* offsets;   // num_ranks + 1
  uint32* ticket;           // zero before and after
  int64 num_items;
  int64 flip;
  TableSize table;
  Divisor num_blocks;
};

// Adds a block's counts to the joint ones.
template <class Key, class Offset, class Table>
__device__ inline void join_counts(const Table& table, Offset* counters) {
  if constexpr (is_same<Table, PackedTable> && sizeof(Offset) == 4) {
    // Two at once: neither overflows, as all counts together are below 2^32.
    for (int i = threadIdx.x; i < num_ranks<Key> / 2; i += blockDim.x) {
      const uint64 low = table.words[i] & 0xffffu, high = table.words[i] >> 16;
      if (low | high)
        ptx::atom_add_relaxed_gpu(reinterpret_cast<uint64*>(counters) + i, high << 32 | low);
    }
  } else {
    for (int i = threadIdx.x; i < num_ranks<Key>; i += blockDim.x) {
      const uint32 count = table.total(i);
      if (count != 0) ptx::atom_add_relaxed_gpu(counters + i, Offset(count));
    }
  }
}

struct Sum {
  template <class T>
  __device__ static T apply(const T& a, const T& b) {
    return a + b;
  }
};

// Turns counts into offsets. Each warp has a contiguous share of the ranks.
template <class Key, class Offset, int block_threads>
__device__ inline void scan_counts(Offset* counters, Offset* offsets, uint32 flip, int64 num_items,
                                   Offset* shared) {
  constexpr int warps = block_threads / warp_threads;
  constexpr int step = warp_threads * 4;  // ranks of a warp at a time
  constexpr int share = num_ranks<Key> / warps > step ? num_ranks<Key> / warps : step;
  constexpr int loads = share / step < 4 ? share / step : 4;  // in flight
  const int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;
  const int begin = warp * share + lane * 4;
  // Where the counts of ranks i to i + 3 lie together; a flipped lowest bit turns them round.
  auto load = [&](int i) {
    Pack<Offset, 4> pack;
#pragma unroll
    for (int k = 0; k < 4; ++k) pack.items[k] = ptx::ld_cg(counters + ((i + k) ^ flip));
    return pack;
  };
  auto sum_of = [](const Pack<Offset, 4>& pack) {
    return (pack.items[0] + pack.items[1]) + (pack.items[2] + pack.items[3]);
  };
  Offset sum = 0;
  if (warp * share < num_ranks<Key>) {
#pragma unroll 1
    for (int i = begin; i < (warp + 1) * share; i += loads * step) {
      Pack<Offset, 4> packs[loads];
#pragma unroll
      for (int k = 0; k < loads; ++k) packs[k] = load(i + k * step);
#pragma unroll
      for (int k = 0; k < loads; ++k) sum += sum_of(packs[k]);
    }
  }
  sum = scan_group<warp_threads, Sum>(sum, warp_threads);
  if (lane == warp_threads - 1) shared[warp] = sum;
  ptx::syncthreads();
  if (warp * share >= num_ranks<Key>) return;
  Offset before = 0;
  for (int i = 0; i < warp; ++i) before += shared[i];
#pragma unroll 1
  for (int i = begin; i < (warp + 1) * share; i += loads * step) {
    Pack<Offset, 4> packs[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) packs[k] = load(i + k * step);
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      const Offset mine = sum_of(packs[k]);
      const Offset up_to_mine = scan_group<warp_threads, Sum>(mine, warp_threads);
      Offset next = before + up_to_mine - mine;
      before += shuffle(up_to_mine, warp_threads - 1);
      Pack<Offset, 4> starts;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        starts.items[j] = next;
        next += packs[k].items[j];
        if (sizeof(Key) == 1) counters[(i + k * step + j) ^ flip] = 0;
      }
      store_pack(offsets + i + k * step, starts);
    }
  }
  if (threadIdx.x == 0) offsets[num_ranks<Key>] = Offset(num_items);
}

template <class Policy, class Key, class Table, class Offset>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    counting_sort_count_kernel(const __grid_constant__ CountingSortCount params) {
  auto& shared = ptx::dynamic_shared_memory<HistogramShared>();
  Offset* counters = reinterpret_cast<Offset*>(params.counters);
  Table table(shared.words, params.table, {params.counters, sizeof(Offset)}, 0);
  ptx::syncthreads();
  count_flat<Policy, Key, 1>(KeyBins<Key>{}, table, ptx::assume_global(params.input),
                             params.num_items, 0, int(blockIdx.x), params.num_blocks);
  ptx::syncthreads();
  join_counts<Key>(table, counters);
  ptx::syncthreads();
  if (threadIdx.x == 0)
    shared.is_last = ptx::atom_add_acq_rel_gpu<1>(params.ticket) == gridDim.x - 1;
  ptx::syncthreads();
  if (!shared.is_last) return;
  // The table has done its duty.
  scan_counts<Key, Offset, Policy::block_threads>(
      counters, reinterpret_cast<Offset*>(params.offsets), uint32(params.flip), params.num_items,
      reinterpret_cast<Offset*>(shared.words));
  if (threadIdx.x == 0) *params.ticket = 0;
}

// --- filling ------------------------------------------------------------------------------

struct CountingSortFill {
  unsigned char* output;
  const unsigned char* offsets;
  int64 num_items;
  int64 flip;
};

template <int chunk>
struct FillShared {
  uint16 starts[chunk + 1];
};

// The greatest ranks that start at or before two positions, found by all threads together: at
// least 512, of whom the first 256 look for `first` and the next for `last`.
template <int ranks, class Offset>
__device__ inline void find_ranks(const Offset* offsets, Offset first, Offset last, int& first_rank,
                                  int& last_rank) {
  constexpr int fan = 256;
  const bool is_first = threadIdx.x < fan;
  const bool is_second = !is_first && threadIdx.x < 2 * fan;
  const Offset position = is_first ? first : last;
  first_rank = last_rank = 0;
#pragma unroll
  for (int step = ranks / fan; step >= 1; step /= fan) {
    const int rank = (is_first ? first_rank : last_rank) + int(threadIdx.x % fan) * step;
    const bool is_before = (is_first || is_second) && offsets[rank] <= position;
    first_rank += (ptx::syncthreads_count(is_before && is_first) - 1) * step;
    last_rank += (ptx::syncthreads_count(is_before && is_second) - 1) * step;
  }
}

// The last of starts[begin, end) at or before a position; starts[begin] is.
__device__ inline int find_start(const uint16* starts, int begin, int end, int position) {
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    const bool is_before = starts[middle] <= position;
    begin = is_before ? middle : begin;
    end = is_before ? end : middle;
  }
  return begin;
}

// Writes the keys of a vector at `position` of the tile, of which [begin, end) are to be written.
template <class Key, class KeyOf>
__device__ inline void fill_vector(Key* tile, int position, int begin, int end,
                                   const uint16* starts, int num_starts, KeyOf key_of) {
  constexpr int items = vector_bytes / sizeof(Key);
  const int first = position > begin ? position : begin;
  const int stop = position + items < end ? position + items : end;
  if (first >= stop) return;
  int rank = find_start(starts, 0, num_starts, first);
  if (stop - first == items && starts[rank + 1] >= stop) {
    Pack<Key, items> pack;
    const Key key = key_of(rank);
#pragma unroll
    for (int i = 0; i < items; ++i) pack.items[i] = key;
    store_pack(tile + position, pack);
    return;
  }
  int next = starts[rank + 1];
#pragma unroll 1
  for (int i = first; i < stop; ++i) {
    if (i >= next) {
      rank = find_start(starts, rank, num_starts, i);
      next = starts[rank + 1];
    }
    tile[i] = key_of(rank);
  }
}

template <class Policy, class Key, class Offset>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    counting_sort_fill_kernel(const __grid_constant__ CountingSortFill params) {
  constexpr int items = vector_bytes / sizeof(Key);
  constexpr int tile_items = Policy::block_threads * Policy::loads_in_flight * items;
  constexpr int chunk = num_ranks<Key> < 8192 ? num_ranks<Key> : 8192;
  static_assert(tile_items < 0x10000 && Policy::block_threads >= 512);
  auto& shared = ptx::shared_memory<FillShared<chunk>>();
  const Offset* offsets = ptx::assume_global(reinterpret_cast<const Offset*>(params.offsets));
  // Tiles start at multiples of 16 bytes, the first one perhaps before the output.
  const int gap = int(reinterpret_cast<uint64>(params.output) % vector_bytes) / int(sizeof(Key));
  const int64 tile_begin = int64(blockIdx.x) * tile_items - gap;
  const int lo = tile_begin < 0 ? gap : 0;
  const int64 rest = params.num_items - tile_begin;
  const int hi = rest < tile_items ? int(rest) : tile_items;
  if (hi <= lo) return;
  Key* tile = ptx::assume_global(reinterpret_cast<Key*>(params.output)) + tile_begin;

  int first_rank, last_rank;
  find_ranks<num_ranks<Key>>(offsets, Offset(tile_begin + lo), Offset(tile_begin + hi - 1),
                             first_rank, last_rank);
  for (int base = first_rank; base <= last_rank; base += chunk) {
    const int count = last_rank - base + 1 < chunk ? last_rank - base + 1 : chunk;
    for (int i = threadIdx.x; i <= count; i += Policy::block_threads) {
      const int64 start = int64(offsets[base + i]) - tile_begin;
      shared.starts[i] = uint16(start < lo ? lo : start > hi ? hi : start);
    }
    ptx::syncthreads();
    auto key_of = [&](int rank) { return Key((base + rank) ^ int(params.flip)); };
#pragma unroll 1
    for (int i = 0; i < Policy::loads_in_flight; ++i) {
      const int position = (i * Policy::block_threads + int(threadIdx.x)) * items;
      fill_vector(tile, position, shared.starts[0], shared.starts[count], shared.starts, count,
                  key_of);
    }
    ptx::syncthreads();
  }
}

}  // namespace gpualgo

#endif
