// Histogram with weights: sums[k][b0][b1]... of the weights of the samples of kept place k.
//
// Algorithm  Weights are added up exactly, as long integers (histogram/sums.cuh): a block's share
//            of one row in digits in shared memory, where those of all bins fit, which are then
//            added to the joint sums; else in the joint sums at once. A second kernel rounds the
//            sums to the result and clears them.
// Bytes      those of each sample's numbers and weight, once; a sum's words that any weight
//            reached, twice. Launches: two. Temporary storage: the joint sums, 8 bytes a word.
// Bits       Integer additions commute: the same bits on every run and every GPU, the exact sum
//            rounded once.
#ifndef GPUALGO_HISTOGRAM_WEIGHTED_CUH
#define GPUALGO_HISTOGRAM_WEIGHTED_CUH

#include "histogram/joint.cuh"
#include "histogram/kernel.cuh"
#include "histogram/sums.cuh"
#include "parts/fold.cuh"
#include "parts/operator.cuh"

namespace gpualgo {

// What all launches of a call share; all zero before, and after the last one.
struct SumsHead {
  uint32 reached[2];  // a bit for each plane of words that some sum has changed
  uint32 finished;    // blocks of the second kernel
  uint32 unused;
};

template <int leaves, class A, class Bins, class Access>
struct WeightedHistogram {
  Init<A> weight;  // of all samples, where there is no array of them
  const unsigned char* input[leaves];
  uint64* sums;
  SumsHead* head;
  int64 num_bins;
  int64 num_digits;  // of a sum in shared memory; 0: none
  TableSize table;
  int64 num_slots;  // of the joint sums
  JointRows<leaves, Access> rows;
  Bins bins;
};

// Lets a block's window of digits begin so that some of its weights fit; where those are all zero,
// a weight of one.
template <class A, class W, class Params>
__device__ inline int32 first_digit_of(const Params& params, JointShared& shared) {
  using Parts = SumParts<A>;
  using Format = SumFormat<typename Parts::Number>;
  const int32 num_digits = int32(params.num_digits);
  if constexpr (!Format::is_float) {
    return 0;
  } else {
    if (num_digits == 0 || num_digits == 2 * Format::words) return 0;
    int32 highest = 0;
    const auto look = [&](const A& weight) {
#pragma unroll
      for (int part = 0; part < Parts::count; ++part) {
        const Addend addend = Format::split(Parts::part(weight, part));
        const int32 digit = (addend.place + Format::mantissa) / 32;
        if (addend.m != 0 && digit > highest) highest = digit;
      }
    };
    if constexpr (is_same<W, NoWeight>) {
      A weight;
      memcpy(&weight, params.weight.value, sizeof(A));
      look(weight);
    } else {
      params.rows.template some_weights<W>(params.input, [&](const W& x) { look(convert<A>(x)); });
    }
    if (highest > 0) ptx::atom_min_relaxed_cta(&shared.lowest, -highest);
    ptx::syncthreads();
    // One digit above is for what they add up to.
    const int32 digit = shared.lowest < 0 ? -shared.lowest : Format::digit_of_one;
    const int32 first = digit + 2 - num_digits;
    return first > 0 ? first : 0;
  }
}

template <class Policy, class Op, class T, class W, class A, class Bins, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    histogram_weighted_kernel(
        const __grid_constant__
            ParamsFor<Op, WeightedHistogram<num_leaves<T> + weight_leaves<W>, A, Bins, Access>>
                params) {
  take_numbers<Op>(params);
  auto& shared = ptx::dynamic_shared_memory<JointShared>();
  const auto& rows = params.rows;
  if (threadIdx.x == 0) shared.lowest = 0;
  clear_words(shared.words, uint32(params.table.words));
  const auto bins = params.bins.open(shared.words + params.table.words);
  ptx::syncthreads();

  SharedSums<A> sums;
  const int64 first_slot = (rows.first_place() - rows.first) * params.num_bins;
  sums.joint = {params.sums, params.num_slots, first_slot};
  sums.num_slots = uint32(params.table.num_slots);
  sums.replicas = uint32(params.table.replicas);
  sums.num_digits = int32(params.num_digits);
  sums.digits = shared.words + threadIdx.x % sums.replicas;
  sums.first_digit = first_digit_of<A, W>(params, shared);
  sums.reached = 0;

  const uint32 base = rows.channel() * uint32(params.num_bins);
  rows.template walk<Policy, T, W>(
      params.input,
      [&](const auto& samples, const auto& weights) {
        constexpr int items = sizeof(samples.items) / sizeof(samples.items[0]);
        int32 found[items];
        bins.find(samples, found);
#pragma unroll
        for (int i = 0; i < items; ++i) {
          if (found[i] < 0) continue;
          A weight;
          if constexpr (is_same<W, NoWeight>) {
            memcpy(&weight, params.weight.value, sizeof(A));
          } else {
            weight = convert<A>(weights.items[i]);
          }
          sums.add(base + uint32(found[i]), weight);
        }
      },
      []() {});
  ptx::syncthreads();
  sums.flush(shared.words);
  const uint32 low = uint32(sums.reached), high = uint32(sums.reached >> 32);
  if (low) ptx::atom_or_relaxed_gpu(&params.head->reached[0], low);
  if (high) ptx::atom_or_relaxed_gpu(&params.head->reached[1], high);
}

// --- the result -------------------------------------------------------------------------------

struct RoundSums {
  uint64* sums;
  SumsHead* head;
  unsigned char* output;
  int64 num_slots;  // of the joint sums
  int64 num_bins;
  int64 first_place;
  int64 number_bytes;
  Divisor bins_per_place;
  Layout<1> places, cells;  // of the result
};

// The bits of a part of a sum, whose words are cleared.
template <class A>
__device__ inline uint64 take_sum(const JointSums<A>& joint, int part, int64 slot, uint64 reached) {
  using Format = typename JointSums<A>::Format;
  constexpr int words = Format::words;
  if constexpr (!Format::is_float) {
    uint64* word = joint.word(part, 0, slot);
    const uint64 sum = ptx::ld_cg(word);
    *word = 0;
    return sum;
  } else {
    uint32 kinds = 0;
    if (reached >> words & 1) {
      uint64* word = joint.word(part, words, slot);
      kinds = uint32(ptx::ld_cg(word));
      *word = 0;
    }
    int first = 0, end = words;
    while (first < end && !(reached >> first & 1)) ++first;
    while (end > first && !(reached >> (end - 1) & 1)) --end;
    // Digits of 32 bits: the lower one unsigned, the upper one with the word's sign.
    int64 carry = 0;
#pragma unroll 1
    for (int i = first; i < end; ++i) {
      const int64 word = int64(ptx::ld_cg(joint.word(part, i, slot)));
      carry = (carry + int64(uint32(word))) >> 32;
      carry = (carry + (word >> 32)) >> 32;
    }
    const bool is_negative = carry < 0;
    const int64 factor = is_negative ? -1 : 1;
    Rounding<Format> rounding;
    carry = 0;
#pragma unroll 1
    for (int i = first; i < end; ++i) {
      uint64* address = joint.word(part, i, slot);
      const int64 word = int64(ptx::ld_cg(address));
      *address = 0;
      carry += factor * int64(uint32(word));
      rounding.append(2 * i, uint32(carry));
      carry >>= 32;
      carry += factor * (word >> 32);
      rounding.append(2 * i + 1, uint32(carry));
      carry >>= 32;
    }
    rounding.append(2 * end, uint32(carry));
    constexpr uint64 infinity = uint64(Format::special) << Format::mantissa;
    if (kinds & sum_is_nan || kinds == (sum_is_positive | sum_is_negative)) {
      return infinity | uint64(1) << (Format::mantissa - 1);
    }
    if (kinds) return infinity | uint64(kinds == sum_is_negative) << Format::sign;
    return rounding.bits(is_negative);
  }
}

__device__ inline void store_bits(unsigned char* address, int64 bytes, uint64 bits) {
  if (bytes == 8) {
    *reinterpret_cast<uint64*>(address) = bits;
  } else if (bytes == 4) {
    *reinterpret_cast<uint32*>(address) = uint32(bits);
  } else if (bytes == 2) {
    *reinterpret_cast<uint16*>(address) = uint16(bits);
  } else {
    *address = uint8(bits);
  }
}

template <class Policy, class A>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    histogram_round_kernel(const __grid_constant__ RoundSums params) {
  const uint64 reached = uint64(ptx::ld_cg(&params.head->reached[1])) << 32 |
                         uint64(ptx::ld_cg(&params.head->reached[0]));
  const JointSums<A> joint{params.sums, params.num_slots, 0};
  const int64 step = int64(gridDim.x) * Policy::block_threads;
#pragma unroll 1
  for (int64 slot = int64(blockIdx.x) * Policy::block_threads + threadIdx.x;
       slot < params.num_slots; slot += step) {
    const int64 place = params.bins_per_place.divide(slot);
    unsigned char* address = params.output + params.places.offset(params.first_place + place) +
                             params.cells.offset(slot - place * params.num_bins);
#pragma unroll
    for (int part = 0; part < SumParts<A>::count; ++part) {
      store_bits(address + part * params.number_bytes, params.number_bytes,
                 take_sum(joint, part, slot, reached));
    }
  }
  ptx::syncthreads();
  if (threadIdx.x == 0 && ptx::atom_add_acq_rel_gpu<1>(&params.head->finished) == gridDim.x - 1) {
    *params.head = {};
  }
}

}  // namespace gpualgo

#endif
