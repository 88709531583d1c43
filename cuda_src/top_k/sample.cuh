// Bounds between which the elements of some ranks of a long row must lie, by a sample of it.
//
// Algorithm  Bounds from a sample (Floyd and Rivest, "Expected time bounds for selection", CACM 18,
//            1975, doi:10.1145/360680.360691). One element of each of many stretches of equal
//            length, at a place that depends on the stretch's number alone, is a sample; two of its
//            ranks, by (key, position), are bounds (top_k/ranks.cuh) between which a wanted rank
//            lies but for one case in thousands of millions. What lies there is kept
//            (top_k/filter.cuh), in a list for each pair of bounds, which do not overlap. If a rank
//            does lie outside, or more was kept than there is room for, who reads the counts
//            (top_k/ranks.cuh) takes the row itself.
// Bytes      of the sample; launches: one.
// Storage    The sample: by formulas of the host's side.
// Bits       Bounds are elements: there is one result.
#ifndef GPUALGO_TOP_K_SAMPLE_CUH
#define GPUALGO_TOP_K_SAMPLE_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

constexpr int most_ranks = 8;  // that one reading is for

// Of one list of elements that are kept.
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
  unsigned char* items;
  unsigned char* positions;
  int64 row_items;
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

template <int block_threads, class Key, class Index>
__global__ void __launch_bounds__(block_threads)
    gather_sample_kernel(const __grid_constant__ GatherSampleParams params) {
  const uint64 stretch = uint64(blockIdx.x) * block_threads + threadIdx.x;
  if (stretch >> params.sample_bits != 0) return;
  const uint64 at = place_in_stretch(stretch, uint64(params.row_items), params.sample_bits);
  reinterpret_cast<Key*>(params.items)[stretch] = reinterpret_cast<const Key*>(params.row)[at];
  reinterpret_cast<Index*>(params.positions)[stretch] = Index(at);
}

}  // namespace gpualgo

#endif
