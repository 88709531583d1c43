// Merging several sorted runs, of which some may lie on other GPUs, to a part of one; stable.
//
// Algorithm  run_cuts_kernel and tile_cuts_kernel (merge_sort/cuts.cuh) find which elements of each
//            run make a tile. In merge_runs_kernel a block then has a tile: it loads these into
//            shared memory, merges them pairwise there until one run is left, by "merge path" (Odeh
//            et al. 2012, doi:10.1109/IPDPSW.2012.202), and writes them.
// Bytes      2 (k + v) per key of k bytes with values of v, for any number of runs; launches:
//            three; temporary storage: 8 bytes for each run and tile.
#ifndef GPUALGO_MERGE_SORT_RUNS_CUH
#define GPUALGO_MERGE_SORT_RUNS_CUH

#include "merge_sort/cuts.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

template <class Policy, class Order, class T, class V, class Result, int runs>
struct RunsTile {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int tile_items = Policy::tile_items;
  static constexpr bool is_async = Policy::is_ahead;
  static constexpr int slots = slot_of<items>(tile_items + items) + 1;  // what is read
  static_assert(tile_items <= 1 << 16);
  using Params = MergeRunsParams<num_leaves<T>, num_leaves<V>, runs>;

  struct Shared {
    alignas(16) T keys[slots];  // of the runs in order
    alignas(16) V values[has_values<V> ? tile_items : 1];
    uint16 order[has_values<V> ? 2 : 1][has_values<V> ? tile_items : 1];  // values of the keys
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  int64 begin;  // of the tile in the part
  int total;    // elements of the tile
  int side;     // of the order

  __device__ RunsTile(const Params& params, Shared& shared)
      : params(params), shared(shared), begin(-params.first), total(0), side(0) {}

  // Loads elements of a run behind those loaded before. Warps begin at multiples of their threads
  // in the run, as requests to other GPUs are for whole lines.
  __device__ void load(int run, int64 low, int length) {
    const auto keys = advanced(sources_of<T>(params.keys[run]), low);
    const auto values = advanced(sources_of<V>(params.values[run]), low);
    for (int i = int(threadIdx.x) - int(low % warp_threads); i < length; i += threads) {
      if (i < 0) continue;
      copy_element<is_async>(&shared.keys[slot_of<items>(total + i)], advanced(keys, i));
      if constexpr (has_values<V>) {
        copy_element<is_async>(&shared.values[total + i], advanced(values, i));
      }
    }
    total += length;
  }

  // Merges runs in shared memory pairwise until one is left, which begins in front. The merged runs
  // begin where threads do.
  template <int count>
  __device__ void merge(const int (&begins)[count], const int (&lengths)[count]) {
    if constexpr (count > 1) {
      constexpr int pairs = (count + 1) / 2;
      int merged_begins[pairs], merged_lengths[pairs];
      const int own = threadIdx.x * items;
      int place = 0, left = 0, a = 0, b = 0, num_a = 0, num_b = 0, end = 0;
#pragma unroll
      for (int pair = 0; pair < pairs; ++pair) {
        constexpr int last = count - 1;
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
      if (left > 0) merge_own<count == runs>(a, num_a, b, num_b, place, left, keys);
      ptx::syncthreads();
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (k < left) assign(shared.keys[slot_of<items>(own + k)], keys[k]);
      }
      ptx::syncthreads();
      side ^= 1;
      merge(merged_begins, merged_lengths);
    }
  }

  // Takes this thread's elements of two runs, merged.
  template <bool is_first>
  __device__ void merge_own(int a, int num_a, int b, int num_b, int place, int left,
                            T (&keys)[items]) {
    const int from_a = split_at(place, num_a, num_b, [&](int in_b, int in_a) {
      return Order::before(shared.keys[slot_of<items>(b + in_b)],
                           shared.keys[slot_of<items>(a + in_a)]);
    });
    const int from_b = b + place - from_a;
    merge_steps<items, Order>(
        shared.keys, a + from_a, a + num_a, from_b, b + num_b, keys, [&](int k, int from) {
          if constexpr (has_values<V>) {
            const int slot = threadIdx.x * items + k;
            if (k < left) {
              shared.order[side ^ 1][slot] = is_first ? uint16(from) : shared.order[side][from];
            }
          }
        });
  }

  __device__ void write() const {
    const bool are_keys_wanted = params.output_keys[0] != nullptr;
    const auto keys = advanced(targets_of<T>(params.output_keys), are_keys_wanted ? begin : 0);
    const auto values = advanced(targets_of<V>(params.output_values), begin);
    for (int i = threadIdx.x; i < total; i += threads) {
      if (are_keys_wanted) store_element(advanced(keys, i), shared.keys[slot_of<items>(i)]);
      if constexpr (has_values<V>) {
        const V& value = shared.values[shared.order[side][i]];
        if constexpr (is_same<V, Result>) {
          store_element(advanced(values, i), value);
        } else {
          reinterpret_cast<Result*>(params.output_values[0])[begin + i] = Result(value);
        }
      }
    }
  }

  __device__ void run(int64 tile) {
    const int64* const cuts = params.cuts + tile * runs;
    int begins[runs], lengths[runs];
    int64 lows[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      lows[run] = cuts[run];
      lengths[run] = int(cuts[runs + run] - lows[run]);
    }
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      begin += lows[run];
      begins[run] = total;
      load(run, lows[run], lengths[run]);
    }
    if (total == 0) return;
    end_copies<is_async>();
    wait_copies<is_async, 0>();
    ptx::syncthreads();
    merge(begins, lengths);
    write();
  }
};

// A block for each tile.
template <class Policy, class Order, class T, class V, class Result, int runs>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) merge_runs_kernel(
    const __grid_constant__ MergeRunsParams<num_leaves<T>, num_leaves<V>, runs> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Work = RunsTile<Policy, Order, T, V, Result, runs>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared).run(blockIdx.x);
}

}  // namespace gpualgo

#endif
