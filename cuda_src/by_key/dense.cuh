// Results of neighbouring keys in a table, without those of keys that no element has.
#ifndef GPUALGO_BY_KEY_DENSE_CUH
#define GPUALGO_BY_KEY_DENSE_CUH

#include "parts/intrinsics.cuh"
#include "parts/key_window.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

template <class A>
struct DenseParams {
  const KeyWindow* window;  // not narrow: the table has no results
  const uint8* present;     // whether there is an element, for each key
  const A* values;
  unsigned char* keys;  // outputs
  unsigned char* aggregates;
  int64* num_runs;
  int64 key_step, aggregate_step;  // bytes
  int64 capacity;                  // of the outputs
};

// A block with a thread for each key.
template <int block_threads, class K, class A>
__global__ void __launch_bounds__(block_threads)
    dense_results_kernel(const __grid_constant__ DenseParams<A> params) {
  struct Shared {
    int counts[block_threads / warp_threads];
  };
  if (!params.window->is_narrow) return;
  auto& shared = ptx::shared_memory<Shared>();
  const int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;
  const bool is_there = params.present[threadIdx.x] != 0;
  const uint32 lanes = ptx::ballot_sync(all_lanes, is_there);
  if (lane == 0) shared.counts[warp] = ptx::popc(lanes);
  ptx::syncthreads();
  int64 end = ptx::popc(lanes & ptx::lanemask_le());
  for (int w = 0; w < warp; ++w) end += shared.counts[w];
  if (is_there && end <= params.capacity) {
    *reinterpret_cast<K*>(params.keys + (end - 1) * params.key_step) =
        K(params.window->first + threadIdx.x);
    *reinterpret_cast<A*>(params.aggregates + (end - 1) * params.aggregate_step) =
        params.values[threadIdx.x];
  }
  if (threadIdx.x == block_threads - 1) *params.num_runs = end;
}

}  // namespace gpualgo

#endif
