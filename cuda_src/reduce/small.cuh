// Reduction of few elements: one row, by one wave of blocks.
//
// Algorithm  Latency is all: no loops over tiles, and one trip through L2 from block to block. A
//            thread asks for all its vectors first. A block leaves its value in a word of its own
//            under a tag (parts/tagged.cuh). The last block takes the others' words, each thread
//            one or a few neighbours. They are there some hundred cycles after its own value: it
//            waits so long before it looks, as a look that comes too early costs a trip more.
//            Elements behind the last whole vector are one more value, the last. The last block is
//            the last to begin: all that it waits for run or have run.
// Bytes      sizeof(T) per element; launches: one. Temporary storage: 8 bytes per block for each
//            32 bits of a value.
// Operator, bits: as reduce/rows.cuh.
#ifndef GPUALGO_REDUCE_SMALL_CUH
#define GPUALGO_REDUCE_SMALL_CUH

#include "parts/clock.cuh"
#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/tagged.cuh"
#include "parts/warp.cuh"
#include "reduce/rows.cuh"

namespace gpualgo {

template <int block_threads_, int loads_, int share_, int wait_, int min_blocks_>
struct SmallReducePolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads = loads_;  // vectors of a thread; a power of two
  static constexpr int share = share_;  // words of a thread of the last block, at most
  static constexpr int wait = wait_;    // cycles from its own value until the last block looks
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
};

template <class A, class T, class Access>
struct SmallReduce {
  Init<A> init;
  Sources<T> input;
  Targets<A> output;
  uint64* words;     // of all blocks but the last; all zero before and after; none for one block
  uint32 num_items;  // at least one vector's
  Access access;     // of reduce/rows.cuh
};

template <class A, int warps>
struct SmallReduceShared {
  A values[warps];
  A joined[warps];
  A tail;
};

// How a warp that has all of its vectors shares them out: in rows of a few neighbours to a lane. If
// the operator commutes a lane folds all of its own at once. Else its rows are values of their own,
// which take exchanges: no more than 4, though neighbours apart are loaded a little slower.
template <class Op, int loads>
struct WarpRows {
  static constexpr int near = Op::commutative || loads <= 4 ? 1 : loads / 4;
  static constexpr int rows = loads / near;

  __device__ static int vector(int lane, int k) {
    return k / near * (warp_threads * near) + lane * near + k % near;
  }
};

// Folds the vectors of such a warp; every lane gets the result.
template <class Op, class A, int loads>
__device__ inline A reduce_whole_warp(const A (&sums)[loads]) {
  if constexpr (Op::commutative) {
    A sum[] = {fold<Op, 0, loads>(sums)};
    return reduce_group<warp_threads, Op>(sum);
  } else {
    using Shares = WarpRows<Op, loads>;
    A values[Shares::rows];
#pragma unroll
    for (int i = 0; i < Shares::rows; ++i) {
      A row[Shares::near];
#pragma unroll
      for (int k = 0; k < Shares::near; ++k) row[k] = sums[i * Shares::near + k];
      values[i] = fold<Op, 0, Shares::near>(row);
    }
    return reduce_group<warp_threads, Op>(values);
  }
}

// The same of a warp that has `left` vectors, at least one: a lane has neighbours. Its lane 0 gets
// the result.
template <class Op, class A, int loads>
__device__ inline A reduce_partial_warp(const A (&sums)[loads], int left) {
  const int mine = int(threadIdx.x % warp_threads) * loads;
  A value = sums[0];
#pragma unroll
  for (int k = 1; k < loads; ++k) {
    if (mine + k < left) value = Op::apply(value, sums[k]);
  }
  return reduce_group_partial<warp_threads, Op>(value, (left + loads - 1) / loads);
}

// Folds the values that other blocks leave in the first `count` words, and empties these; thread 0
// of the block gets the result, all call it.
template <class Policy, class Op, class A, int warps>
__device__ inline A join_small(uint64* words, int count, uint32 tag, uint32 since,
                               A (&joined)[warps]) {
  constexpr int share = Policy::share;
  const int begin = threadIdx.x * share;
  const int left = count - begin;
  A found[share];
  bool is_there;
  wait_cycles(since, Policy::wait);
  do {
    Tagged<A> seen[share];
#pragma unroll
    for (int k = 0; k < share; ++k) {
      if (k < left) seen[k] = load_tagged<A>(words, begin + k);
    }
    is_there = true;
#pragma unroll
    for (int k = 0; k < share; ++k) {
      if (k < left) is_there = untag(seen[k], found[k]) == tag && is_there;
    }
  } while (!is_there);
  A value = found[0];
#pragma unroll
  for (int k = 0; k < share; ++k) {
    if (k >= left) break;
    store_tagged(words, begin + k, A{}, 0);
    if (k > 0) value = Op::apply(value, found[k]);
  }
  const int warp = threadIdx.x / warp_threads;
  const int active = (count + share - 1) / share - warp * warp_threads;
  if (active > 0) {
    value = reduce_group_partial<warp_threads, Op>(value, active);
    if (threadIdx.x % warp_threads == 0) joined[warp] = value;
  }
  ptx::syncthreads();
  if (threadIdx.x > 0) return value;
  value = joined[0];
#pragma unroll
  for (int i = 1; i < warps; ++i) {
    if (i * warp_threads * share < count) value = Op::apply(value, joined[i]);
  }
  return value;
}

// The elements, vector by vector.
template <class T, class Access>
struct SmallRow {
  static constexpr int items = Access::items;
  static constexpr bool are_neighbours = Access::are_neighbours;
  const Sources<T>& input;
  const Access& access;

  __device__ Pack<Held<T>, items> vector(int i) const {
    return access.load(input, int64(i) * items);
  }
  __device__ Held<T> element(int64 i) const { return access.load_one(input, i); }
};

// The value of a block, which has at least one vector. `rest`: elements behind the last vector,
// which the last block reduces beside its vectors. Thread 0 gets the value; `since` is when.
template <class Policy, class Op, class A, class Row, class Shared>
__device__ inline A reduce_block(const Row& row, int num_vectors, int rest, uint32& since,
                                 Shared& shared) {
  constexpr int threads = Policy::block_threads, loads = Policy::loads;
  constexpr int warps = threads / warp_threads, warp_vectors = loads * warp_threads;
  const int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;
  const int block_first = int(blockIdx.x) * warps * warp_vectors;
  const int first = block_first + warp * warp_vectors;
  const int left = num_vectors - first;
  // In a warp that has not all of its vectors a lane takes neighbours. What is past the last vector
  // becomes that one, and part of no result.
  const bool is_whole = left >= warp_vectors;
  decltype(row.vector(0)) packs[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k) {
    const int own = is_whole ? WarpRows<Op, loads>::vector(lane, k) : lane * loads + k;
    const int vector = first + own;
    packs[k] = row.vector(vector < num_vectors ? vector : num_vectors - 1);
  }
  if (rest > 0 && warp == warps - 1 && blockIdx.x == gridDim.x - 1) {
    A value{};
    if (lane < rest) value = convert<A>(row.element(int64(num_vectors) * Row::items + lane));
    value = reduce_group_partial<warp_threads, Op>(value, rest);
    if (lane == 0) shared.tail = value;
  }
  A sums[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k) sums[k] = fold_pack<Op, A, Row::are_neighbours>(packs[k]);
  if (left > 0) {
    const A value = is_whole ? reduce_whole_warp<Op>(sums) : reduce_partial_warp<Op>(sums, left);
    if (lane == 0) shared.values[warp] = value;
  }
  ptx::syncthreads();
  since = ptx::clock_cycles();
  if (warp > 0) return shared.values[0];
  const int block_left = num_vectors - block_first;
  const int count = (block_left + warp_vectors - 1) / warp_vectors;
  const A value = shared.values[lane % warps];
  return reduce_group_partial<warps, Op>(value, count < warps ? count : warps);
}

template <class Policy, class Op, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    reduce_small_kernel(const __grid_constant__ ParamsFor<Op, SmallReduce<A, T, Access>> params) {
  take_numbers<Op>(params);
  constexpr int warps = Policy::block_threads / warp_threads;
  constexpr uint32 is_there = 1;
  auto& shared = ptx::shared_memory<SmallReduceShared<A, warps>>();
  const SmallRow<T, Access> row{params.input, params.access};
  const int others = int(gridDim.x) - 1;
  const int num_vectors = params.num_items / row.items, rest = params.num_items % row.items;
  uint32 since;
  A total = reduce_block<Policy, Op, A>(row, num_vectors, rest, since, shared);
  if (int(blockIdx.x) != others) {
    if (threadIdx.x == 0) store_tagged(params.words, blockIdx.x, total, is_there);
    return;
  }
  if (others > 0) {
    const A joined = join_small<Policy, Op>(params.words, others, is_there, since, shared.joined);
    if (threadIdx.x == 0) total = Op::apply(joined, total);
  }
  if (threadIdx.x > 0) return;
  if (rest > 0) total = Op::apply(total, shared.tail);
  const A result = with_init<Op>(params.init, total);
  store_element(params.output, result);
}

}  // namespace gpualgo

#endif
