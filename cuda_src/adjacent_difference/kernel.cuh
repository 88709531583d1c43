// Adjacent differences: output[0] = x[0], output[i] = op(x[i], x[i - 1]), in each line of an axis.
//
// Algorithm  One tile per block and no loop. Elements are numbered as the axes lie in memory: the
// one
//            before an element in its line is `inner` numbers back, where `inner` elements lie
//            within a step of the axis. A thread loads `loads_in_flight` packs of neighbours and
//            what is before them: along the innermost axis one element besides, which lies in the
//            line of cache that the lane before reads; else the pack that is `inner` back, which
//            another thread has read or will read, through L2. Both are loaded before anything is
//            stored.
// Bytes      sizeof(T) + sizeof(R) per element; launches: one; temporary storage: none.
// Operator   Called once for each element that has one before it, the later one first; nothing is
//            asked of it. Each call stands alone, so results do not depend on the cut.
#ifndef GPUALGO_ADJACENT_DIFFERENCE_KERNEL_CUH
#define GPUALGO_ADJACENT_DIFFERENCE_KERNEL_CUH

#include "parts/convert.cuh"
#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "select/items.cuh"

namespace gpualgo {

// is_along: the axis is the innermost one. Else `inner` is a multiple of `items`, so that the
// elements of a pack stand at one place of their lines.
template <int block_threads_, int loads_in_flight_, int items_, bool is_along_>
struct AdjacentPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads_in_flight = loads_in_flight_;  // packs per thread
  static constexpr int items = items_;                      // elements per pack
  static constexpr bool is_along = is_along_;
};

// Results without gaps, whose packs lie at multiples of their size.
struct DenseResults {
  template <class R, int items>
  __device__ void store(const Targets<R>& to, int64 index, const Pack<R, items>& pack) const {
    store_leaves(advanced(to, index), pack);
  }
};

// Each leaf in strides of its own: EvenLayout or Layout.
template <class Places, int leaves>
struct SpacedResults {
  Places places;

  template <class R, int items>
  __device__ void store(const Targets<R>& to, int64 index, const Pack<R, items>& pack) const {
#pragma unroll
    for (int k = 0; k < items; ++k) {
      int64 offsets[leaves];
      places.offsets(index + k, offsets);
      store_element(moved(to, [&](auto leaf) { return offsets[decltype(leaf)::value]; }),
                    pack.items[k]);
    }
  }
};

template <class T, class R, class Reads, class Writes>
struct AdjacentParams {
  Sources<T> input;
  Targets<R> output;
  int64 num_items;
  Divisor inner;   // elements within a step of the axis
  Divisor length;  // of the axis
  Reads reads;
  Writes writes;
};

template <class Policy, class Op, class T, class R, class Reads, class Writes>
struct AdjacentDifference {
  using E = Held<T>;
  using Params = AdjacentParams<T, R, Reads, Writes>;
  static constexpr int items = Policy::items, loads = Policy::loads_in_flight;

  struct Loaded {
    Pack<E, items> elements, before;  // where there is none before, the element itself
    int64 place;                      // of the first one in its line
  };

  const Params& params;

  __device__ int64 place_of(int64 index) const {
    const int64 step = params.inner.divide(index);
    return step - params.length.divide(step) * params.length.value;
  }

  __device__ R combined(const E& element, const E& before, bool is_first) const {
    if (is_first) return convert<R>(element);
    return Op::apply(element, before);
  }

  __device__ void load(Loaded& held, int64 first) const {
    const auto& input = params.input;
    held.place = place_of(first);
    held.elements = params.reads.template load<T, items>(input, first);
    held.before = held.elements;
    if constexpr (Policy::is_along) {
#pragma unroll
      for (int k = 1; k < items; ++k) held.before.items[k] = held.elements.items[k - 1];
      if (held.place > 0) {
        held.before.items[0] = params.reads.template load_one<T>(input, first - 1);
      }
    } else if (held.place > 0) {
      held.before = params.reads.template load<T, items>(input, first - params.inner.value);
    }
  }

  __device__ void store(const Loaded& held, int64 first) const {
    // Few packs of long lines hold a line's first element.
    const bool is_within = held.place > 0 && held.place + items <= params.length.value;
    Pack<R, items> result;
    if (Policy::is_along && is_within) {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        result.items[k] = Op::apply(held.elements.items[k], held.before.items[k]);
      }
    } else {
      int64 place = held.place;
#pragma unroll
      for (int k = 0; k < items; ++k) {
        result.items[k] = combined(held.elements.items[k], held.before.items[k], place == 0);
        if (Policy::is_along && ++place == params.length.value) place = 0;
      }
    }
    params.writes.store(params.output, first, result);
  }

  // The same of one element: of the last tile, which may have no whole packs.
  __device__ void run_one(int64 index) const {
    const bool is_first = place_of(index) == 0;
    const E element = params.reads.template load_one<T>(params.input, index);
    E before = element;
    if (!is_first) {
      before = params.reads.template load_one<T>(params.input, index - params.inner.value);
    }
    Pack<R, 1> result;
    result.items[0] = combined(element, before, is_first);
    params.writes.store(params.output, index, result);
  }

  __device__ void run() const {
    const int64 row = int64(Policy::block_threads) * items;
    const int64 tile = row * loads;
    const int64 begin = int64(blockIdx.x) * tile + threadIdx.x * items;
    if (int64(blockIdx.x + 1) * tile > params.num_items) {
      for (int load = 0; load < loads; ++load) {
        const int64 first = begin + load * row;
        for (int64 i = first; i < first + items && i < params.num_items; ++i) run_one(i);
      }
      return;
    }
    Loaded held[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) load(held[i], begin + i * row);
#pragma unroll
    for (int i = 0; i < loads; ++i) store(held[i], begin + i * row);
  }
};

template <class Policy, class Op, class T, class R, class Reads, class Writes>
__global__ void __launch_bounds__(Policy::block_threads) adjacent_difference_kernel(
    const __grid_constant__ ParamsFor<Op, AdjacentParams<T, R, Reads, Writes>> params) {
  take_numbers<Op>(params);
  AdjacentDifference<Policy, Op, T, R, Reads, Writes>{params}.run();
}

}  // namespace gpualgo

#endif
