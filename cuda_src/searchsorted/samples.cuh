// Samples of a sorted array, through which many queries are led (kernel.cuh): number k has every
// element whose place, counted from 1, is a multiple of 2^(k node_bits), and behind them some more,
// so that nodes of 2^node_bits can be loaded whole. The first blocks find the windows of tiles
// meanwhile: they wait for one load after the other, and the others for memory.
//
// Bytes      of the sorted array a sector for each element of the first sample; of the samples each
//            byte once. Launches: one.
#ifndef GPUALGO_SEARCHSORTED_SAMPLES_CUH
#define GPUALGO_SEARCHSORTED_SAMPLES_CUH

#include "searchsorted/kernel.cuh"

namespace gpualgo {

constexpr int sample_blocks = 8;  // per multiprocessor

template <class Policy, class Order, bool is_right, class A, class V, class T, class Index,
          class Places>
__global__ void __launch_bounds__(Policy::block_threads, sample_blocks) search_samples_kernel(
    const __grid_constant__ ParamsFor<Order, SearchParams<num_leaves<A>, Places>> params) {
  take_numbers<Order>(params);
  using Work = Search<Policy, Order, is_right, A, V, T, Index, Places>;
  constexpr int threads = Policy::block_threads;
  const int64 block = int64(blockIdx.x) - params.window_blocks;
  if (block < 0) {
    const int64 first = int64(blockIdx.x) * threads + threadIdx.x;
    return Work::find_windows(params, first, params.window_blocks * threads);
  }
  T* samples = reinterpret_cast<T*>(params.samples);
  const int64 step = (gridDim.x - params.window_blocks) * threads;
  const int64 num_items = params.sample_begins[params.num_samples + 1];
#pragma unroll 1
  for (int64 i = block * threads + threadIdx.x; i < num_items; i += step) {
    int number = 1;
    while (number < params.num_samples && i >= params.sample_begins[number + 1]) ++number;
    const int64 end = (i - params.sample_begins[number] + 1) << number * Policy::node_bits;
    const int64 at = end < params.num_sorted ? end : params.num_sorted;
    samples[i] = Work::element_at(params, at - 1);
  }
}

}  // namespace gpualgo

#endif
