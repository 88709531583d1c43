// Samples of a sorted array, through which many queries are led (kernel.cuh): number k has every
// element whose place, counted from 1, is a multiple of 2^(k node_bits), and behind them some more,
// so that nodes of 2^node_bits can be loaded whole.
//
// Bytes      of the sorted array a sector for each element of the first sample; of the samples each
//            byte once. Launches: one.
#ifndef GPUALGO_SEARCHSORTED_SAMPLES_CUH
#define GPUALGO_SEARCHSORTED_SAMPLES_CUH

#include "parts/convert.cuh"
#include "parts/layout.cuh"
#include "parts/order.cuh"

namespace gpualgo {

constexpr int most_samples = 16;

struct SampleParams {
  const unsigned char* sorted[1];
  unsigned char* samples;
  int64 num_sorted, num_samples, step;
  int64
      sample_begins[most_samples + 1];  // of each, by its number, in elements; all end at the next
  int64 num_items;                      // of all samples together
};

// A: the sorted array's elements; T: what they become before they are compared.
template <int block_threads, int node_bits, class A, class T>
__global__ void __launch_bounds__(block_threads)
    search_samples_kernel(const __grid_constant__ SampleParams params) {
  T* samples = reinterpret_cast<T*>(params.samples);
  const int64 step = int64(gridDim.x) * block_threads;
#pragma unroll 1
  for (int64 i = int64(blockIdx.x) * block_threads + threadIdx.x; i < params.num_items; i += step) {
    int number = 1;
    while (number < params.num_samples && i >= params.sample_begins[number + 1]) ++number;
    const int64 end = (i - params.sample_begins[number] + 1) << number * node_bits;
    const int64 at = end < params.num_sorted ? end : params.num_sorted;
    Sources<A> from = sources_of<A>(params.sorted);
    from.at[0] += (at - 1) * params.step;
    samples[i] = convert<T>(load_element<A>(from));
  }
}

}  // namespace gpualgo

#endif
