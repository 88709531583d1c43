// The first kernel of a radix sort: counts the digits of all passes in one reading of the keys,
// and decides what the passes do.
//
// Each block counts in shared memory, in `replicas` tables side by side, so that lanes rarely meet
// in a bank and keys that are all equal cost no more than others. The last block of a row turns
// the row's counts into the places where each digit's keys begin; the last row writes the schedule:
// a pass whose digit is the same in all keys of a row, for every row, is left out. Where a window
// is wanted it also finds the least and the greatest key: if these are near each other, no pass
// runs.
#ifndef GPUALGO_RADIX_SORT_HISTOGRAM_CUH
#define GPUALGO_RADIX_SORT_HISTOGRAM_CUH

#include "parts/intrinsics.cuh"
#include "parts/key_window.cuh"
#include "parts/layout.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"
#include "radix_sort/keys.cuh"

namespace gpualgo {

constexpr int max_passes = 12;

// What a pass does, as bits of its word of the schedule. Of the two places besides the input, the
// last pass writes the output, and passes before it turn by turn.
enum PassAction : uint32 {
  pass_runs = 1,
  pass_is_first = 2,  // reads the input
  pass_is_last = 4,   // writes the output
  pass_writes_second = 8
};

// Words that are zero between calls. Behind them one word per row counts the blocks that are done.
struct RadixControl {
  uint32 rows_done;
  uint32 passes_needed;
  uint64 groups_done[8];  // of tiles; see radix_sort/passes.cuh
  uint64 ends[2];         // the complement of the least key, and the greatest
};

template <class Index>
struct RadixTables {
  RadixControl* control;
  Index* counts;     // of each row, pass and digit; zero between calls
  Index* starts;     // where the keys with each digit begin, likewise
  uint32* schedule;  // a word per pass
};

template <int block_threads_, int loads_in_flight_, int replicas_, bool overlaps_,
          bool finds_window_>
struct RadixHistogramPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads_in_flight = loads_in_flight_;  // vectors per thread
  static constexpr int replicas = replicas_;                // a power of two up to 32
  static constexpr bool overlaps = overlaps_;               // the first pass may be launched early
  static constexpr bool finds_window = finds_window_;       // of integers in one row
};

template <class Index>
struct RadixHistogramParams {
  const unsigned char* keys;
  RadixTables<Index> tables;
  KeyWindow* window;  // if it is wanted
  int64 row_items, chunk_items;
  int64 num_rows;
  Divisor blocks_per_row;
  Digit digits[max_passes];
  uint32 is_in_place;   // some output is its input: an even number of passes has to run
  uint32 has_to_write;  // some output is not: a pass has to run
  uint64 window_size;   // the most keys from the least to the greatest in a narrow window
  uint64 sign;          // the bit of a key that is inverted
};

namespace detail {

template <int passes, int replicas>
struct RadixHistogramShared {
  alignas(16) uint32 counts[passes][num_digits][replicas];
  uint32 passes_needed;
  uint32 is_last;
};

// Which of the passes run, given those that would change something.
__device__ inline uint32 passes_to_run(uint32 needed, int passes, bool is_in_place,
                                       bool has_to_write) {
  uint32 left_out = ~needed & ((1u << passes) - 1);
  // A pass that was left out runs as a plain copy. Passes in place are even in number.
  uint32 more = is_in_place && (ptx::popc(needed) & 1) ? 1 : 0;
  if (needed == 0 && has_to_write) more = is_in_place ? 2 : 1;
  for (; more > 0; --more) {
    const uint32 lowest = left_out & (0 - left_out);
    needed |= lowest;
    left_out &= ~lowest;
  }
  return needed;
}

__device__ inline void write_schedule(uint32* schedule, uint32 runs, int passes) {
  uint32 left = ptx::popc(runs);
  uint32 action = pass_runs | pass_is_first;
  for (int pass = 0; pass < passes; ++pass) {
    if (!(runs >> pass & 1)) {
      schedule[pass] = 0;
      continue;
    }
    --left;
    schedule[pass] =
        action | (left == 0 ? pass_is_last : 0) | (left % 2 == 0 ? pass_writes_second : 0);
    action = pass_runs;
  }
}

}  // namespace detail

template <class Policy, int passes, class Order, class Index>
struct RadixHistogram {
  using Key = typename Order::Key;
  using Shared = detail::RadixHistogramShared<passes, Policy::replicas>;
  using Params = RadixHistogramParams<Index>;
  static constexpr int items = vector_bytes / sizeof(Key);
  static constexpr int threads = Policy::block_threads;
  static constexpr int replicas = Policy::replicas;
  static constexpr int scale = replicas == 32   ? 7
                               : replicas == 16 ? 6
                               : replicas == 8  ? 5
                               : replicas == 4  ? 4
                               : replicas == 2  ? 3
                                                : 2;
  static_assert(1 << scale == 4 * replicas);

  const Params& params;
  Shared& shared;
  Key least = Key(~Key(0)), greatest = 0;  // of this thread's keys, in the order of unsigned ones

  __device__ void count(Key key) {
    const auto ordered = Order::ordered(key);
    if constexpr (Policy::finds_window) {
      const Key place = Key(key ^ Key(params.sign));
      least = place < least ? place : least;
      greatest = place > greatest ? place : greatest;
    }
    const uint32 column = threadIdx.x % replicas * 4;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const uint32 offset = params.digits[pass].template scaled<scale>(ordered) | column;
      unsigned char* table = reinterpret_cast<unsigned char*>(shared.counts[pass]);
      ptx::atom_add_relaxed_cta(reinterpret_cast<uint32*>(table + offset), 1u);
    }
  }

  template <int N>
  __device__ void count_pack(const Pack<Key, N>& pack) {
#pragma unroll
    for (int i = 0; i < N; ++i) count(pack.items[i]);
  }

  __device__ void count_chunk(const Key* keys, int64 num_keys) {
    // Up to the first whole vector, and after the last.
    const uint64 misaligned = reinterpret_cast<uint64>(keys) % vector_bytes;
    int64 head = misaligned == 0 ? 0 : (vector_bytes - misaligned) / sizeof(Key);
    if (head > num_keys) head = num_keys;
    const int64 vectors = (num_keys - head) / items;
    const int64 tail = head + vectors * items;
    if (threadIdx.x < head) count(keys[threadIdx.x]);
    if (threadIdx.x < num_keys - tail) count(keys[tail + threadIdx.x]);
    const Key* body = keys + head;
    constexpr int loads = Policy::loads_in_flight;
    int64 vector = threadIdx.x;
    for (; vector + (loads - 1) * threads < vectors; vector += loads * threads) {
      Pack<Key, items> packs[loads];
#pragma unroll
      for (int i = 0; i < loads; ++i) {
        packs[i] = load_pack<Key, items>(body + (vector + i * threads) * items);
      }
#pragma unroll
      for (int i = 0; i < loads; ++i) count_pack(packs[i]);
    }
    for (; vector < vectors; vector += threads) {
      count_pack(load_pack<Key, items>(body + vector * items));
    }
  }

  // Few warps find keys that are beyond those which others have told.
  __device__ void tell_ends() const {
    uint64 ends[2] = {~uint64(least), uint64(greatest)};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int delta = 1; delta < warp_threads; delta *= 2) {
        const uint64 other = shuffle_xor(ends[i], delta);
        ends[i] = other > ends[i] ? other : ends[i];
      }
      uint64* end = params.tables.control->ends + i;
      if (threadIdx.x % warp_threads == 0 && ends[i] > ptx::ld_relaxed_gpu(end)) {
        ptx::atom_max_relaxed_gpu(end, ends[i]);
      }
    }
  }

  // Returns whether the window is narrow.
  __device__ bool put_window() const {
    uint64* ends = params.tables.control->ends;
    const uint64 first = ~ptx::ld_cg(ends), last = ptx::ld_cg(ends + 1);
    ends[0] = ends[1] = 0;
    const bool is_narrow = last - first < params.window_size;
    *params.window = {first ^ params.sign, is_narrow};
    return is_narrow;
  }

  __device__ void add_to_row(Index* counts) {
    for (int i = threadIdx.x; i < passes * num_digits; i += threads) {
      const int pass = i / num_digits;
      const uint32* columns = shared.counts[pass][i % num_digits];
      uint32 sum = 0;
#pragma unroll
      for (int k = 0; k < replicas; ++k) sum += columns[(k + threadIdx.x) % replicas];
      if (sum != 0)
        ptx::atom_add_relaxed_gpu(counts + (i ^ int(params.digits[pass].flip)), Index(sum));
    }
  }

  // Scans a row's counts and clears them; a warp per pass.
  __device__ void finish_row(Index* counts, Index* starts) {
    constexpr int per_lane = num_digits / warp_threads;
    const int lane = threadIdx.x % warp_threads;
    for (int pass = threadIdx.x / warp_threads; pass < passes; pass += threads / warp_threads) {
      Index values[per_lane];
      Index sum = 0;
      bool is_whole = false;
      const int first = pass * num_digits + lane * per_lane;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) values[i] = ptx::ld_cg(counts + first + i);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        counts[first + i] = 0;
        is_whole = is_whole || values[i] == Index(params.row_items);
        sum += values[i];
      }
      Index before = sum_up_to(sum) - sum;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        starts[first + i] = before;
        before += values[i];
      }
      if (!ptx::any_sync(all_lanes, is_whole) && lane == 0) {
        ptx::atom_or_relaxed_cta(&shared.passes_needed, 1u << pass);
      }
    }
  }

  // Called by one thread once a row's starts are written.
  __device__ void finish() {
    RadixControl* control = params.tables.control;
    uint32 needed = shared.passes_needed;
    if (params.num_rows > 1) {
      ptx::atom_or_relaxed_gpu(&control->passes_needed, needed);
      if (ptx::atom_add_acq_rel_gpu<1>(&control->rows_done) != params.num_rows - 1) return;
      needed = ptx::ld_cg(&control->passes_needed);
      control->passes_needed = 0;
      control->rows_done = 0;
    }
    uint32 runs = detail::passes_to_run(needed, passes, params.is_in_place, params.has_to_write);
    if constexpr (Policy::finds_window) runs = put_window() ? 0 : runs;
    detail::write_schedule(params.tables.schedule, runs, passes);
  }

  __device__ void run() {
    uint4* words = reinterpret_cast<uint4*>(&shared.counts);
    for (int i = threadIdx.x; i < int(sizeof(shared.counts) / 16); i += threads) {
      words[i] = make_uint4(0, 0, 0, 0);
    }
    if (threadIdx.x == 0) shared.passes_needed = 0;
    ptx::syncthreads();
    const int64 row = params.blocks_per_row.divide(blockIdx.x);
    const int64 begin = (blockIdx.x - row * params.blocks_per_row.value) * params.chunk_items;
    const int64 rest = params.row_items - begin;
    count_chunk(reinterpret_cast<const Key*>(params.keys) + row * params.row_items + begin,
                rest < params.chunk_items ? rest : params.chunk_items);
    ptx::syncthreads();
    Index* counts = params.tables.counts + row * passes * num_digits;
    if constexpr (Policy::finds_window) tell_ends();
    add_to_row(counts);
    ptx::syncthreads();
    uint32* row_done = reinterpret_cast<uint32*>(params.tables.control + 1) + row;
    if (threadIdx.x == 0) {
      shared.is_last = ptx::atom_add_acq_rel_gpu<1>(row_done) == params.blocks_per_row.value - 1;
      if (shared.is_last) *row_done = 0;
    }
    ptx::syncthreads();
    if (!shared.is_last) return;
    finish_row(counts, params.tables.starts + row * passes * num_digits);
    ptx::syncthreads();
    if (threadIdx.x == 0) finish();
  }
};

template <class Policy, int passes, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads)
    radix_histogram_kernel(const __grid_constant__ RadixHistogramParams<Index> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  using Work = RadixHistogram<Policy, passes, Order, Index>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work{params, shared}.run();
}

}  // namespace gpualgo

#endif
