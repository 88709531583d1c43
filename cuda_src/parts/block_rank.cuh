// Ranking by a digit inside a group of warps: where each key of a tile goes, stably.
//
// Each warp counts the digits of its keys in a table of its own; the scan of these tables says
// where each warp's keys with each digit begin; then the warp goes through its keys again, 32 at a
// time, and lanes that hold the same digit find each other by ballots (Adinets and Merrill,
// "Onesweep: a faster least significant digit radix sort for GPUs", 2022, arXiv:2206.01784). So
// a tile's counts are known before any of its keys is ranked.
//
// An `address` here is that of a digit's counter in its warp's table (DigitTable).
#ifndef GPUALGO_PARTS_BLOCK_RANK_CUH
#define GPUALGO_PARTS_BLOCK_RANK_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"
#include "radix_sort/keys.cuh"  // Digit: what a key is ranked by

namespace gpualgo {

// The lanes of a warp whose digits have the same address. `ones` are ptx::opaque_ones().
__device__ inline uint32 lanes_with(uint32 address, uint32 ones) {
  using ptx::ballot_agreeing, ptx::lop3_and;
  static_assert(digit_bits == 8);
  // In two halves: the compiler tests all bits of a word at once, and has seven predicates.
  const uint32 upper = ptx::opaque_shr<4>(address);
  const uint32 low = lop3_and(ballot_agreeing<4>(address, ones), ballot_agreeing<8>(address, ones),
                              ballot_agreeing<16>(address, ones));
  const uint32 middle =
      lop3_and(low, ballot_agreeing<32>(address, ones), ballot_agreeing<4>(upper, ones));
  const uint32 high =
      lop3_and(middle, ballot_agreeing<8>(upper, ones), ballot_agreeing<16>(upper, ones));
  return high & ballot_agreeing<32>(upper, ones);
}

// A table for each warp: first counts, then the position of the last key so far.
template <int warps>
struct alignas(4 * num_digits) RankTables {
  uint32 counters[warps][num_digits];
};
using RankSums = uint32[num_digits / warp_threads];

// A group is a block, or a single warp of one: then `thread` is the lane and no barrier is needed.
template <int warps>
struct Ranking {
  static constexpr int threads = warps * warp_threads;
  // The threads that deal with digits, each with neighbouring ones: a power of two.
  static constexpr int digit_threads = threads >= 256 ? 256 : threads >= 128 ? 128 : threads & 96;
  static constexpr int digits = num_digits / digit_threads;
  static_assert(digits * digit_threads == num_digits);

  RankTables<warps>& tables;
  uint32* sums;  // RankSums, if there is more than one warp
  int thread, warp;
  uint32 up_to_this, ones;

  __device__ Ranking(RankTables<warps>& tables, uint32* sums)
      : tables(tables),
        sums(sums),
        thread(warps == 1 ? threadIdx.x % warp_threads : threadIdx.x),
        warp(warps == 1 ? 0 : threadIdx.x / warp_threads),
        up_to_this(ptx::lanemask_le()),
        ones(ptx::opaque_ones()) {}

  __device__ static void sync() {
    if constexpr (warps == 1) {
      ptx::syncwarp();
    } else {
      ptx::syncthreads();
    }
  }
  // The vote says nothing new, but tells the compiler that a warp goes the same way.
  __device__ bool has_digits() const {
    return threads == digit_threads || ptx::any_sync(all_lanes, thread < digit_threads);
  }
  __device__ int first_digit() const { return thread * digits; }

  // Sets this warp's counters to zero.
  __device__ void clear() {
    uint4* table = reinterpret_cast<uint4*>(tables.counters[warp]);
#pragma unroll
    for (int i = 0; i < num_digits / 4 / warp_threads; ++i) {
      table[i * warp_threads + threadIdx.x % warp_threads] = make_uint4(0, 0, 0, 0);
    }
  }

  __device__ DigitTable table(const Digit& digit) const {
    return DigitTable(digit, tables.counters[warp]);
  }

  // Between clear, count and what follows each there is a barrier: of the warp, of the group.
  __device__ void count(uint32 address) {
    ptx::atom_add_relaxed_cta(&DigitTable::word(address), 1u);
  }

  // The group's counts of this thread's digits; called by those that have digits.
  __device__ void totals(uint32 (&counts)[digits]) const {
#pragma unroll
    for (int i = 0; i < digits; ++i) counts[i] = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
#pragma unroll
      for (int i = 0; i < digits; ++i) counts[i] += tables.counters[w][first_digit() + i];
    }
  }

  // The first step of `place`; called by those that have digits. Returns what it passes on.
  __device__ uint32 sum_up(const uint32 (&counts)[digits]) {
    uint32 sum = 0;
#pragma unroll
    for (int i = 0; i < digits; ++i) sum += counts[i];
    return sum_before_in_warp(sum);
  }

  // Where the keys with this thread's digits begin; called by those that have digits, after a
  // barrier. After another one the counters are ready to rank.
  __device__ void place(const uint32 (&counts)[digits], uint32 before, uint32 (&starts)[digits]) {
#pragma unroll
    for (int i = 0; i < parts - 1; ++i) before += i < warp ? sums[i] : 0;
#pragma unroll
    for (int i = 0; i < digits; ++i) {
      starts[i] = before;
      before += counts[i];
      uint32 last = starts[i] - 1;
#pragma unroll
      for (int w = 0; w < warps; ++w) {
        uint32& counter = tables.counters[w][first_digit() + i];
        const uint32 count = counter;
        counter = last;
        last += count;
      }
    }
  }

  // The next key's position: called by all lanes of a warp, in the order of their keys.
  __device__ uint32 rank(uint32 address) {
    uint32& last = DigitTable::word(address);
    const uint32 before = last;
    const uint32 same = lanes_with(address, ones);
    const uint32 position = before + ptx::popc(same & up_to_this);
    // No lane writes before all have read: votes wait for lanes, but order no memory. CUB's
    // BlockRadixRankMatch waits at the same two places.
    ptx::syncwarp();
    if ((same & ~up_to_this) == 0) last = position;
    ptx::syncwarp();
    return position;
  }

 private:
  static constexpr int parts = digit_threads / warp_threads;

  // Over the threads before this one; leaves the whole warp's sum for the others.
  __device__ uint32 sum_before_in_warp(uint32 value) {
    const int lane = threadIdx.x % warp_threads;
    const uint32 sum = sum_up_to(value);
    if (parts > 1 && lane == warp_threads - 1) sums[warp] = sum;
    return sum - value;
  }
};

}  // namespace gpualgo

#endif
