// The element of a rank among many, found by a block: by key, equal keys by position.
//
// Algorithm  Radix selection, the most significant digit first (Zhang, Naruse, Li and Wang,
//            "Parallel Top-K Algorithms on GPU", SC 2023, doi:10.1145/3581784.3607062). A first
//            look finds the bits in which the elements differ, so that no digit is counted that all
//            share; each look counts the next 11 bits of those that agree so far. Once keys agree,
//            the positions decide, which are all different. It ends as soon as one element is left,
//            or, where all up to it are wanted, once those are left that are wanted.
// Bits       Counts are integers, and the order of (key, position) is total: the result is the one
//            there is, in whatever order elements come.
#ifndef GPUALGO_TOP_K_SEARCH_CUH
#define GPUALGO_TOP_K_SEARCH_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/types.cuh"
#include "parts/warp.cuh"
#include "radix_sort/keys.cuh"

namespace gpualgo {

// What is found: the first elements and their positions in order; the list of these positions, as
// 64 bits in any order; the element of a rank; of a sample, the (key, position) of a rank.
enum SelectResult { select_sorted, select_listed, select_one, select_bound };

constexpr int select_bits = 11;
constexpr int select_bins = 1 << select_bits;

// A row of an array. flip: the bits of ordered keys that are inverted.
template <class Order, class Index>
struct RowElements {
  using Ordered = typename Order::Ordered;
  using Item = typename Order::Key;
  const Item* keys;
  int64 count;
  Ordered flip;

  __device__ Ordered ordered(Item item) const { return Order::ordered(item) ^ flip; }
  __device__ Ordered key(Index i) const { return ordered(keys[i]); }
  __device__ Index position(Index i) const { return i; }
};

// What is known of an element: some leading bits of its key, then of its position.
template <class Ordered, class Index>
struct Cut {
  Ordered key = 0, key_mask = 0;
  Index position = 0, position_mask = 0;

  __device__ bool agrees(Ordered other, Index at) const {
    return (other & key_mask) == key && (at & position_mask) == position;
  }
  // Whether another element comes before it, or agrees.
  __device__ bool takes(Ordered other, Index at) const {
    const Ordered known = other & key_mask;
    return known < key || (known == key && (at & position_mask) <= position);
  }
};

namespace detail {

// The number of bits up to the highest that is set.
__device__ inline int bit_length(uint32 word) { return 32 - ptx::clz(word); }
__device__ inline int bit_length(uint64 word) {
  const uint32 high = uint32(word >> 32);
  return high != 0 ? 32 + bit_length(high) : bit_length(uint32(word));
}

}  // namespace detail

template <int threads, class Ordered, class Index>
struct RankSearch {
  static constexpr int warps = threads / warp_threads;
  static constexpr int per_thread = select_bins / threads;
  static_assert(per_thread * threads == select_bins);

  struct Shared {
    alignas(16) Index counts[select_bins];
    uint64 ones[warps], zeros[warps];  // bits that are set, and clear, in some element
    Index sums[warps];
    Index before, count;  // of the digit that is chosen
    uint32 digit;
  };

  Shared& shared;
  Index rank;                 // among those that agree with the cut
  Index count;                // of these
  Cut<Ordered, Index> cut{};  // the same in all threads

  // Whether it is true, which is the same in all threads: the vote tells the compiler so.
  __device__ static bool agreed(bool is_true) { return ptx::any_sync(all_lanes, is_true); }

  // Calls f(is_there, i, key, position) for each element, by whole warps. has_positions: else they
  // are not read, and 0.
  template <class Source, class F>
  __device__ static void for_each(const Source& source, bool has_positions, F f) {
    constexpr int batch = 32 / int(sizeof(Ordered));  // loads in flight
#pragma unroll 1
    for (int64 begin = 0; agreed(begin < source.count); begin += threads * batch) {
      const int64 left = source.count - begin;
      const Index first = Index(begin) + threadIdx.x;
      Ordered keys[batch];
      Index positions[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const bool is_there = int(threadIdx.x) + j * threads < left;
        keys[j] = is_there ? source.key(Index(first + j * threads)) : Ordered(0);
        positions[j] =
            is_there && has_positions ? source.position(Index(first + j * threads)) : Index(0);
      }
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        f(int(threadIdx.x) + j * threads < left, Index(first + j * threads), keys[j], positions[j]);
      }
    }
  }

  // Finds the element of the rank; with takes_all it may end once the rank is the last of those
  // that agree with the cut. All threads call it.
  template <class Source>
  __device__ void find(const Source& source, bool takes_all) {
    if (!is_done(takes_all)) narrow<false>(source, takes_all);
    if (!is_done(takes_all)) narrow<true>(source, takes_all);
  }

 private:
  __device__ bool is_done(bool takes_all) const {
    return agreed(takes_all ? rank + 1 == count : count == 1);
  }

  template <bool by_position>
  __device__ static auto word_of(Ordered key, Index position) {
    if constexpr (by_position) {
      return position;
    } else {
      return key;
    }
  }

  template <bool by_position, class Source>
  __device__ void narrow(const Source& source, bool takes_all) {
    if constexpr (by_position) {
      narrow_words<true>(source, takes_all, cut.position, cut.position_mask);
    } else {
      narrow_words<false>(source, takes_all, cut.key, cut.key_mask);
    }
  }

  template <bool by_position, class Source, class Word>
  __device__ void narrow_words(const Source& source, bool takes_all, Word& value, Word& mask) {
    Word differ;
    const Word ones = survey<by_position>(source, differ);
    int shift = detail::bit_length(differ);
    mask = shift == 8 * int(sizeof(Word)) ? Word(0) : Word(~Word(0) << shift);
    value = ones & mask;
    while (agreed(shift > 0) && !is_done(takes_all)) {
      const int width = shift < select_bits ? shift : select_bits;
      shift -= width;
      choose<by_position, Word>(source, shift, (1u << width) - 1);
      value |= Word(shared.digit) << shift;
      mask = Word(~Word(0) << shift);
      rank -= shared.before;
      count = shared.count;
    }
  }

  // The bits that are set in some element that agrees, and those in which two differ.
  template <bool by_position, class Source, class Word>
  __device__ Word survey(const Source& source, Word& differ) {
    Word ones = 0, zeros = 0;
    for_each(source, by_position, [&](bool is_there, Index, Ordered key, Index position) {
      if (!is_there || !cut.agrees(key, position)) return;
      const Word word = word_of<by_position>(key, position);
      ones |= word;
      zeros |= Word(~word);
    });
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      ones |= shuffle_xor(ones, delta);
      zeros |= shuffle_xor(zeros, delta);
    }
    ptx::syncthreads();  // all have read those of the survey before
    if (threadIdx.x % warp_threads == 0) {
      shared.ones[threadIdx.x / warp_threads] = ones;
      shared.zeros[threadIdx.x / warp_threads] = zeros;
    }
    ptx::syncthreads();
    ones = zeros = 0;
    for (int w = 0; w < warps; ++w) {
      ones |= Word(shared.ones[w]);
      zeros |= Word(shared.zeros[w]);
    }
    differ = ones & zeros;
    return ones;
  }

  // Counts a digit of the elements that agree, and finds the one that the rank falls into.
  template <bool by_position, class Word, class Source>
  __device__ void choose(const Source& source, int shift, uint32 digits) {
    count_digits<by_position>(source, shift, digits);
    look_up();
    ptx::syncthreads();
  }

  __device__ void add(uint32 digit, int number) {
    ptx::atom_add_relaxed_cta(&shared.counts[digit], Index(number));
  }

 public:
  // Counts a digit of the elements that agree. Barriers stand before and behind it.
  template <bool by_position, class Source>
  __device__ void count_digits(const Source& source, int shift, uint32 digits) {
    for (int i = threadIdx.x; i < select_bins; i += threads) shared.counts[i] = 0;
    ptx::syncthreads();
    for_each(source, by_position, [&](bool is_there, Index, Ordered key, Index position) {
      const bool is_counted = is_there && cut.agrees(key, position);
      if (!ptx::any_sync(all_lanes, is_counted)) return;
      const uint32 lanes = ptx::ballot_sync(all_lanes, is_counted);
      uint32 digit = 0;
      if (is_counted) digit = uint32(word_of<by_position>(key, position) >> shift) & digits;
      const int first = ptx::ffs(lanes) - 1;
      const uint32 common = ptx::shfl_sync(all_lanes, digit, first);
      // Neighbours often have one digit: together they add it once.
      if (ptx::all_sync(all_lanes, !is_counted || digit == common)) {
        if (int(threadIdx.x % warp_threads) == first) add(common, ptx::popc(lanes));
      } else if (is_counted) {
        add(digit, 1);
      }
    });
    ptx::syncthreads();
  }

  // Finds the digit that the rank falls into, among counts.
  __device__ void look_up() {
    const int lane = threadIdx.x % warp_threads, warp = threadIdx.x / warp_threads;
    Index sum = 0;
#pragma unroll
    for (int i = 0; i < per_thread; ++i) sum += shared.counts[threadIdx.x * per_thread + i];
    Index before = sum;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const Index other = shuffle_up(before, delta);
      if (lane >= delta) before += other;
    }
    if (lane == warp_threads - 1) shared.sums[warp] = before;
    before -= sum;
    ptx::syncthreads();
#pragma unroll
    for (int w = 0; w < warps; ++w) before += w < warp ? shared.sums[w] : Index(0);
    if (rank < before || rank >= before + sum) return;
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      const Index number = shared.counts[threadIdx.x * per_thread + i];
      if (rank >= before && rank < before + number) {
        shared.digit = threadIdx.x * per_thread + i;
        shared.before = before;
        shared.count = number;
      }
      before += number;
    }
  }
};

}  // namespace gpualgo

#endif
