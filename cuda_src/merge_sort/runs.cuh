// Merging several sorted runs, of which some may lie on other GPUs, to a part of one; stable.
//
// Algorithm  run_cuts_kernel and piece_cuts_kernel (merge_sort/cuts.cuh) find which elements of
//            each run make a piece of the result. In merge_runs_kernel a block then has a piece: of
//            each run it holds the next elements in shared memory, in a ring. Those that come no
//            later than the last of any ring are merged pairwise, until one run is left, by "merge
//            path" (Odeh et al. 2012, doi:10.1109/IPDPSW.2012.202), and written; the rings are
//            filled up.
// Bytes      2 (k + v) per key of k bytes with values of v, for any number of runs; launches:
//            three; temporary storage: 8 bytes for each run and piece.
#ifndef GPUALGO_MERGE_SORT_RUNS_CUH
#define GPUALGO_MERGE_SORT_RUNS_CUH

#include "merge_sort/cuts.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// Where shared memory has elements of rings of 2^log_ring each: number i of ring k is asked for as
// k * 2^(log_ring + 1) + i, i below 2^(log_ring + 1).
template <int log_ring>
struct RingSlot {
  __device__ int operator()(int i) const {
    return (i >> (log_ring + 1) << log_ring) + (i & ((1 << log_ring) - 1));
  }
};

template <class Policy, int log_ring, class Order, class T, class V, class Result, int runs>
struct RunsMerge {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int tile_items = Policy::tile_items;
  static constexpr bool is_async = Policy::is_ahead;
  static constexpr int ring = 1 << log_ring;
  static constexpr int slots = slot_of<items>(tile_items + items) + 1;  // what is read
  static_assert(runs * ring + (runs + 1) / 2 * items <= tile_items && tile_items <= 1 << 16);
  using Params = MergeRunsParams<num_leaves<T>, num_leaves<V>, runs>;
  using Slot = RingSlot<log_ring>;

  struct Shared {
    alignas(16) T rings[runs * ring + items];                             // what is read
    alignas(16) T keys[slots];                                            // of merged runs
    alignas(16) V values[has_values<V> ? runs * ring : 1];                // in rings
    uint16 order[has_values<V> ? 2 : 1][has_values<V> ? tile_items : 1];  // values of the keys
    int64 begins[runs], ends[runs];  // of the elements of the piece that are not yet merged
    int64 loaded[runs];              // where those end that were loaded
    int64 firsts[runs];              // of those that are merged now
    int counts[runs];                // of those
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  int64 target;  // in the part, of what is merged next
  int total;     // elements that are merged
  int side;      // of the order

  __device__ RunsMerge(const Params& params, Shared& shared)
      : params(params), shared(shared), target(-params.first), total(0), side(0) {}

  // Fills up a run's ring. Warps begin at multiples of their threads in the run, as requests to
  // other GPUs are for whole lines.
  __device__ void load(int run) {
    const int64 begin = shared.loaded[run], end = ring_end(run);
    const int length = int(end - begin);
    const auto keys = advanced(sources_of<T>(params.keys[run]), begin);
    const auto values = advanced(sources_of<V>(params.values[run]), begin);
    for (int i = int(threadIdx.x) - int(begin % warp_threads); i < length; i += threads) {
      if (i < 0) continue;
      const int slot = run * ring + (int(begin + i) & (ring - 1));
      copy_element<is_async>(&shared.rings[slot], advanced(keys, i));
      if constexpr (has_values<V>) {
        copy_element<is_async>(&shared.values[slot], advanced(values, i));
      }
    }
  }
  __device__ int64 ring_end(int run) const {
    const int64 most = shared.begins[run] + ring, end = shared.ends[run];
    return most < end ? most : end;
  }
  __device__ const T& key_at(int run, int64 place) const {
    return shared.rings[run * ring + (int(place) & (ring - 1))];
  }

  // Finds how many of a ring's elements are merged; by a thread for each run.
  __device__ void count(int run) {
    int last = -1;  // the run whose ring ends first, of those that go on
    for (int i = 0; i < runs; ++i) {
      const int64 end = ring_end(i);
      if (end == shared.ends[i]) continue;
      if (last < 0 || Order::before(key_at(i, end - 1), key_at(last, ring_end(last) - 1))) last = i;
    }
    const int64 begin = shared.begins[run], end = ring_end(run);
    int64 merged_end = end;
    if (last >= 0 && last != run) {
      merged_end = end_before<Order>(begin, end, key_at(last, ring_end(last) - 1), run < last,
                                     [&](int64 i) -> const T& { return key_at(run, i); });
    }
    shared.firsts[run] = begin;
    shared.counts[run] = int(merged_end - begin);
    shared.loaded[run] = end;
  }

  // Merges runs pairwise until one is left, in shared.keys from the front. Merged runs begin where
  // threads do.
  template <int count, class From>
  __device__ void merge(const T* from, From slot, const int (&begins)[count],
                        const int (&lengths)[count]) {
    constexpr int pairs = (count + 1) / 2, last = count - 1;
    int merged_begins[pairs], merged_lengths[pairs];
    const int own = threadIdx.x * items;
    int place = 0, left = 0, a = 0, b = 0, num_a = 0, num_b = 0, end = 0;
#pragma unroll
    for (int pair = 0; pair < pairs; ++pair) {
      const int second = 2 * pair < last ? 2 * pair + 1 : last;
      const int length_b = 2 * pair < last ? lengths[second] : 0;
      const int length = lengths[2 * pair] + length_b;
      merged_begins[pair] = end;
      merged_lengths[pair] = length;
      if (own >= end && own < end + length) {
        place = own - end;
        left = length - place;
        a = begins[2 * pair];
        b = begins[second];
        num_a = lengths[2 * pair];
        num_b = length_b;
      }
      end += (length + items - 1) / items * items;
    }
    T keys[items];
    if (left > 0) merge_own(from, slot, a, num_a, b, num_b, place, left, keys);
    ptx::syncthreads();
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k < left) assign(shared.keys[slot_of<items>(own + k)], keys[k]);
    }
    ptx::syncthreads();
    side ^= 1;
    if constexpr (pairs > 1) {
      merge(shared.keys, [](int i) { return slot_of<items>(i); }, merged_begins, merged_lengths);
    }
  }

  // Takes this thread's elements of two runs, merged.
  template <class From>
  __device__ void merge_own(const T* from, From slot, int a, int num_a, int b, int num_b, int place,
                            int left, T (&keys)[items]) {
    const int in_a = split_at(place, num_a, num_b, [&](int i, int k) {
      return Order::before(from[slot(b + i)], from[slot(a + k)]);
    });
    const int in_b = place - in_a;
    merge_steps<items, Order>(
        from, slot, a + in_a, a + num_a, b + in_b, b + num_b, keys, [&](int k, int i) {
          if constexpr (has_values<V>) {
            const int own = threadIdx.x * items + k;
            if (k < left) {
              shared.order[side ^ 1][own] =
                  is_same<From, Slot> ? uint16(slot(i)) : shared.order[side][i];
            }
          }
        });
  }

  __device__ void write() const {
    const bool are_keys_wanted = params.output_keys[0] != nullptr;
    const auto keys = advanced(targets_of<T>(params.output_keys), are_keys_wanted ? target : 0);
    const auto values = advanced(targets_of<V>(params.output_values), target);
    for (int i = threadIdx.x; i < total; i += threads) {
      if (are_keys_wanted) store_element(advanced(keys, i), shared.keys[slot_of<items>(i)]);
      if constexpr (has_values<V>) {
        const int slot = shared.order[side][i];
        const V& value = shared.values[slot];
        if constexpr (is_same<V, uint32> || is_same<V, uint64>) {
          Result* const to = reinterpret_cast<Result*>(params.output_values[0]) + target;
          to[i] = Result(value) + Result(params.starts[slot / ring]);
        } else {
          store_element(advanced(values, i), value);
        }
      }
    }
  }

  // Merges what the rings allow.
  __device__ void step() {
    for (int run = 0; run < runs; ++run) load(run);
    end_copies<is_async>();
    wait_copies<is_async, 0>();
    ptx::syncthreads();
    if (threadIdx.x < runs) count(threadIdx.x);
    ptx::syncthreads();
    int begins[runs], lengths[runs];
    total = 0;
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      begins[run] = 2 * run * ring + (int(shared.firsts[run]) & (ring - 1));
      lengths[run] = shared.counts[run];
      total += lengths[run];
    }
    if (threadIdx.x < runs) shared.begins[threadIdx.x] += shared.counts[threadIdx.x];
    merge(shared.rings, Slot{}, begins, lengths);
    write();
    if constexpr (has_values<V>) ptx::syncthreads();
    target += total;
  }

  __device__ void run(int64 piece) {
    const int64* const cuts = params.cuts + piece * runs;
    int64 left = 0;
    for (int run = 0; run < runs; ++run) {
      target += cuts[run];
      left += cuts[runs + run] - cuts[run];
    }
    if (threadIdx.x < runs) {
      shared.begins[threadIdx.x] = shared.loaded[threadIdx.x] = cuts[threadIdx.x];
      shared.ends[threadIdx.x] = cuts[runs + threadIdx.x];
    }
    ptx::syncthreads();
    for (; left > 0; left -= total) step();
  }
};

// A block for each piece.
template <class Policy, int log_ring, class Order, class T, class V, class Result, int runs>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) merge_runs_kernel(
    const __grid_constant__ MergeRunsParams<num_leaves<T>, num_leaves<V>, runs> params) {
  ptx::overlap_both<Policy::overlaps>();
  using Work = RunsMerge<Policy, log_ring, Order, T, V, Result, runs>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared).run(blockIdx.x);
}

}  // namespace gpualgo

#endif
