// Buckets of a reduction by index: the elements whose indices agree in their high bits.
//
// Algorithm  A stable sort by these bits alone makes a bucket's elements neighbours, in order. A
//            table (by_index/tables.cuh) has results of one bucket. Shares cut all elements evenly,
//            wherever buckets end: the elements of share s in bucket b go to table s + b. So no two
//            of these meet in one table; some tables stay without elements.
// Bytes      A search for each bucket in the sorted keys.
#ifndef GPUALGO_BY_INDEX_BUCKETS_CUH
#define GPUALGO_BY_INDEX_BUCKETS_CUH

#include "parts/key_window.cuh"
#include "parts/layout.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

struct Span {
  int64 begin, end;

  __device__ bool is_empty() const { return begin >= end; }
};

struct Buckets {
  const int64* starts;      // of each bucket's elements, and their end; null: one bucket has all
  const KeyWindow* window;  // of keys, to whose first one indices relate; null: they are indices
  int64 count;
  int64 shift;    // low bits of an index: its place in its bucket
  Divisor share;  // elements of a share

  __device__ int64 first_index(int64 bucket) const { return bucket << shift; }
  __device__ uint64 first_key() const { return window ? window->first : 0; }
  // Whether no table holds the results.
  __device__ bool are_useless() const { return window && !window->is_narrow; }

  // The bucket of a table, or of the last one before it that may have elements. All lanes call it.
  __device__ int64 bucket_of(int64 table) const {
    const int64 lane = threadIdx.x % warp_threads;
    int64 begin = 0, end = count;
#pragma unroll 1
    while (end - begin > 1) {
      const int64 step = (end - begin + warp_threads - 1) / warp_threads;
      const int64 bucket = begin + lane * step;
      // Whether its first table is not behind this one; that of the first bucket is not.
      const bool is_before = bucket < end && starts[bucket] < (table - bucket + 1) * share.value;
      begin += (ptx::popc(ptx::ballot_sync(all_lanes, is_before)) - 1) * step;
      if (begin + step < end) end = begin + step;
    }
    return begin;
  }

  // The elements that a share has of a bucket.
  __device__ Span elements_of(int64 bucket, int64 number, int64 num_items) const {
    Span all{0, num_items};
    if (starts) all = {starts[bucket], starts[bucket + 1]};
    const int64 begin = number * share.value, end = begin + share.value;
    return {begin > all.begin ? begin : all.begin, end < all.end ? end : all.end};
  }

  // The tables that have elements of an index.
  __device__ Span tables_of(int64 index, int64 num_tables) const {
    if (!starts) return {0, num_tables};
    const int64 bucket = index >> shift;
    const Span all{starts[bucket], starts[bucket + 1]};
    if (all.is_empty()) return {0, 0};
    return {share.divide(all.begin) + bucket, share.divide(all.end - 1) + bucket + 1};
  }
};

template <class Key>
struct BucketStarts {
  const Key* keys;  // sorted by their buckets
  int64* starts;
  int64 num_items, count;
  int64 shift;
  uint64 mask;  // of the bits behind; a key out of range may have others above
};

template <int block_threads, class Key>
__global__ void __launch_bounds__(block_threads)
    bucket_starts_kernel(const __grid_constant__ BucketStarts<Key> params) {
  const int64 bucket = int64(blockIdx.x) * block_threads + threadIdx.x;
  if (bucket > params.count) return;
  int64 begin = 0, end = params.num_items;
  while (begin < end) {
    const int64 middle = begin + (end - begin) / 2;
    const int64 found = int64(uint64(params.keys[middle]) >> params.shift & params.mask);
    begin = found < bucket ? middle + 1 : begin;
    end = found < bucket ? end : middle;
  }
  params.starts[bucket] = begin;
}

}  // namespace gpualgo

#endif
