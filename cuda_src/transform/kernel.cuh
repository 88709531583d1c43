// Element-wise transformation: output[i] = op(a[i], b[i], …), one to sixteen inputs. An operator
// that returns a tuple fills as many outputs.
//
// Algorithm  One tile per block and no loop: a thread loads `loads_in_flight` packs of each input,
//            applies the operator and stores. Operands have no gaps, and a pack is up to 16 bytes
//            where they are aligned; the numbers of an input that is not are loaded one by one, as
//            L1 has them then. Numbers that lie together as the fields of records do are one
//            operand (Interleaved), from which the operator gets them one by one.
//            transform/rows.cuh serves operands that are repeated or have gaps,
//            transform/turned.cuh those whose neighbours lie along different axes.
// Bytes      the sizes of all operands, per element; launches: one; temporary storage: none.
// In place   safe where output and input are the same elements: a thread loads before it stores.
// Operator   nothing is asked of it; each call stands alone, so results do not depend on the cut.
#ifndef GPUALGO_TRANSFORM_KERNEL_CUH
#define GPUALGO_TRANSFORM_KERNEL_CUH

#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// loose: a bit for each input whose packs lie at no multiples of their size (of FlatTransform).
template <int block_threads_, int loads_in_flight_, int items_, int loose_ = 0>
struct TransformPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads_in_flight = loads_in_flight_;  // packs per thread
  static constexpr int items = items_;                      // elements per pack
  static constexpr int loose = loose_;
};

template <int outputs, int inputs>
struct TransformPointers {
  unsigned char* output[outputs];
  const unsigned char* input[inputs];
};

// Operands without gaps.
template <int outputs, int inputs>
struct FlatOperands {
  TransformPointers<outputs, inputs> pointers;
  int64 num_items;
};

// 0, 1, …, N - 1 as a parameter pack.
template <int... values>
struct Indices {};
template <int N, int... values>
struct MakeIndices : MakeIndices<N - 1, N - 1, values...> {};
template <int... values>
struct MakeIndices<0, values...> {
  using type = Indices<values...>;
};

// Where the numbers of an output's element lie, offset(leaf) bytes behind the first one's.
template <class Output, class Pointers, class Offset>
__device__ inline Targets<Output> targets_at(const Pointers& pointers, Offset offset) {
  Targets<Output> result;
  for_each_leaf<Output>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    result.at[i] = pointers.output[i] + offset(leaf);
  });
  return result;
}

// The same without gaps.
template <class Output, class Pointers>
__device__ inline Targets<Output> dense_targets_at(const Pointers& pointers, int64 index) {
  return targets_at<Output>(pointers, [&](auto leaf) {
    return index * detail::leaf_stride<Leaf<Output, decltype(leaf)::value>>;
  });
}

// Applies the operator to numbers, of which some stand in records: the first `left` of the values
// are looked at, and what they hold is put behind the others.
template <class Op, class Output, int left, class First, class... Rest>
__device__ inline Output apply_to_numbers(const First& first, const Rest&... rest) {
  constexpr int count = num_leaves<First>;
  if constexpr (left == 0) {
    return Op::apply(first, rest...);
  } else if constexpr (!is_record<First>) {
    return apply_to_numbers<Op, Output, left - 1>(rest..., first);
  } else if constexpr (count == 2) {
    return apply_to_numbers<Op, Output, left - 1>(rest..., first.v0, first.v1);
  } else if constexpr (count == 3) {
    return apply_to_numbers<Op, Output, left - 1>(rest..., first.v0, first.v1, first.v2);
  } else {
    static_assert(count == 4);
    return apply_to_numbers<Op, Output, left - 1>(rest..., first.v0, first.v1, first.v2, first.v3);
  }
}

// Stores a warp's packs of records, all of which are there: past a vector each, through shared
// memory, so that neighbouring lanes write neighbouring vectors. `first`: where this lane's begin.
template <int warps, class Memory, class Record, int items>
__device__ inline void store_records(unsigned char* first, const Pack<Record, items>& pack) {
  constexpr int own = items * int(detail::leaf_stride<Memory>), all = warp_threads * own;
  if constexpr (own <= vector_bytes) {
    store_leaves(Targets<Memory>{first}, pack);
  } else {
    struct Staged {
      alignas(vector_bytes) unsigned char bytes[warps][all];
    };
    const int lane = threadIdx.x % warp_threads;
    unsigned char* staged = ptx::shared_memory<Staged>().bytes[threadIdx.x / warp_threads];
    store_leaves(Targets<Memory>{staged + lane * own}, pack);
    ptx::syncwarp();
    unsigned char* to = first - lane * own;
#pragma unroll
    for (int begin = 0; begin < all; begin += warp_threads * vector_bytes) {
      const int at = begin + lane * vector_bytes;
      if (at < all) store_pack(to + at, load_pack<uint8, vector_bytes>(staged + at));
    }
    ptx::syncwarp();  // before the next packs take their place
  }
}

template <class Policy, class Op, class Output, class... Inputs>
struct FlatTransform {
  static constexpr int items = Policy::items;
  static constexpr int loads = Policy::loads_in_flight;
  static constexpr int outputs = num_leaves<Output>;
  using Operands = FlatOperands<outputs, sizeof...(Inputs)>;
  using Pointers = TransformPointers<outputs, sizeof...(Inputs)>;

  using Result = Held<Output>;

  // The packs of one input that a thread holds.
  template <class T>
  struct Packs {
    Pack<Held<T>, items> packs[loads];
  };

  template <class... Values>
  __device__ static Result apply(const Values&... values) {
    return apply_to_numbers<Op, Result, int(sizeof...(Values))>(values...);
  }

  template <int... k>
  __device__ static void run(const Operands& operands, Indices<k...>) {
    const int64 tile = int64(Policy::block_threads) * items * loads;
    const int64 begin = int64(blockIdx.x) * tile + threadIdx.x * items;
    const auto& pointers = operands.pointers;
    if (int64(blockIdx.x + 1) * tile <= operands.num_items) {
      run_tile(begin, pointers, load<Inputs, k>(pointers.input[k], begin)...);
      return;
    }
    for (int load = 0; load < loads; ++load) {
      const int64 first = begin + int64(load) * Policy::block_threads * items;
      for (int64 i = first; i < first + items && i < operands.num_items; ++i) {
        Result value = apply(load_element(advanced(Sources<Inputs>{pointers.input[k]}, i))...);
        store_element(dense_targets_at<Output>(pointers, i), value);
      }
    }
  }

  template <class T, int k>
  __device__ static Packs<T> load(const unsigned char* input, int64 begin) {
    constexpr bool in_packs = (Policy::loose >> k & 1) == 0;
    Packs<T> held;
#pragma unroll
    for (int load = 0; load < loads; ++load) {
      const int64 first = begin + int64(load) * Policy::block_threads * items;
      held.packs[load] = load_leaves<T, items, in_packs>(advanced(Sources<T>{input}, first));
    }
    return held;
  }

  template <class... Helds>
  __device__ static void run_tile(int64 begin, const Pointers& pointers, const Helds&... helds) {
#pragma unroll
    for (int load = 0; load < loads; ++load) {
      Pack<Result, items> result;
#pragma unroll
      for (int i = 0; i < items; ++i) result.items[i] = apply(helds.packs[load].items[i]...);
      const int64 first = begin + int64(load) * Policy::block_threads * items;
      const auto to = dense_targets_at<Output>(pointers, first);
      if constexpr (is_interleaved<Output>) {
        store_records<Policy::block_threads / warp_threads, Output>(to.at[0], result);
      } else {
        store_leaves(to, result);
      }
    }
  }
};

template <class Policy, class Op, class Output, class... Inputs>
__global__ void __launch_bounds__(Policy::block_threads) transform_flat_kernel(
    const __grid_constant__ ParamsFor<Op, FlatOperands<num_leaves<Output>, sizeof...(Inputs)>>
        operands) {
  take_numbers<Op>(operands);
  using Run = FlatTransform<Policy, Op, Output, Inputs...>;
  Run::run(operands, typename MakeIndices<sizeof...(Inputs)>::type{});
}

}  // namespace gpualgo

#endif
