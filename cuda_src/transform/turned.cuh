// Transformation of operands whose neighbours lie along different axes: some inputs are turned.
//
// Algorithm  A block has a tile of `side` rows and columns. Neighbours of the outputs lie along a
//            row, those of turned inputs down a column: these are loaded along columns into shared
//            memory, padded so that neither way of walking it meets a bank twice, and read from
//            there along rows, as all other inputs are from global memory.
// Bytes      the sizes of all operands, per element; launches: one; temporary storage: none.
// In place   safe where an output and an input that is not turned are the same elements.
// Operator   as transform/kernel.cuh.
#ifndef GPUALGO_TRANSFORM_TURNED_CUH
#define GPUALGO_TRANSFORM_TURNED_CUH

#include "parts/layout.cuh"
#include "parts/warp.cuh"
#include "transform/kernel.cuh"

namespace gpualgo {

template <int block_threads_, int side_, int items_in_flight_>
struct TurnedPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int side = side_;                        // of a tile; a multiple of a warp
  static constexpr int items_in_flight = items_in_flight_;  // elements that a thread loads at once
};

// Operands are the outputs and then the inputs; strides are in bytes. `batch`: the other axes.
template <int outputs, int inputs, template <int> class Batch>
struct TurnedOperands {
  TransformPointers<outputs, inputs> pointers;
  int64 num_rows, num_columns;
  Divisor tiles_down, tiles_across;
  int64 row_strides[outputs + inputs], column_strides[outputs + inputs];
  Batch<outputs + inputs> batch;
};

template <class Policy, int turned, class Op, class Output, class... Inputs>
struct TurnedTransform {
  static constexpr int side = Policy::side;
  static constexpr int outputs = num_leaves<Output>;
  static constexpr int operands = outputs + int(sizeof...(Inputs));
  static constexpr int height = Policy::block_threads / warp_threads;  // lines at a time
  static constexpr int width = side / warp_threads;
  static constexpr int items = Policy::items_in_flight;
  static constexpr int per_thread = side * side / Policy::block_threads;
  static_assert(per_thread % items == 0 && side % height == 0 && side % warp_threads == 0);

  __device__ static constexpr bool is_turned(int input) { return turned >> input & 1; }
  // Bytes from a column of a tile in shared memory to the next.
  __device__ static constexpr int pitch(int size) { return side * size + (size < 4 ? 4 : size); }
  // Where an input's tile begins.
  __device__ static constexpr int begin_of(int input) {
    constexpr int sizes[] = {int(sizeof(Inputs))...};
    int end = 0;
    for (int i = 0; i < input; ++i) {
      if (is_turned(i)) end = (end + side * pitch(sizes[i]) + 15) / 16 * 16;
    }
    return end;
  }
  struct Shared {
    alignas(16) unsigned char tiles[begin_of(sizeof...(Inputs))];
  };

  Shared& shared;
  int64 offsets[operands];    // of the tile's first element
  int num_rows, num_columns;  // of the tile

  // Of a thread's elements, in tiles that lie along columns or (of what is not turned) rows: the
  // line and the place in it.
  __device__ static int line_of(int item) {
    return int(threadIdx.x) / warp_threads + item / width * height;
  }
  __device__ static int place_of(int item) {
    return int(threadIdx.x) % warp_threads + item % width * warp_threads;
  }

  template <class Operands>
  __device__ TurnedTransform(const Operands& params, Shared& storage) : shared(storage) {
    const int64 across = params.tiles_across.value, down = params.tiles_down.value;
    const int64 line = params.tiles_across.divide(blockIdx.x);
    const int64 batch = params.tiles_down.divide(line);
    const int64 row = (line - batch * down) * side;
    const int64 column = (int64(blockIdx.x) - line * across) * side;
    params.batch.offsets(batch, offsets);
#pragma unroll
    for (int i = 0; i < operands; ++i) {
      offsets[i] += row * params.row_strides[i] + column * params.column_strides[i];
    }
    num_rows = params.num_rows - row < side ? int(params.num_rows - row) : side;
    num_columns = params.num_columns - column < side ? int(params.num_columns - column) : side;
  }

  // Brings the tile of an input that is turned to shared memory. Here and below `is_whole`: a tile
  // has all rows and columns.
  template <bool is_whole, int k, class T, class Operands>
  __device__ void fill(const Operands& params) {
    if constexpr (is_turned(k)) {
      const unsigned char* from = params.pointers.input[k] + offsets[outputs + k];
      unsigned char* tile = shared.tiles + begin_of(k);
#pragma unroll 1
      for (int first = 0; first < per_thread; first += items) {
        T held[items];
#pragma unroll
        for (int i = 0; i < items; ++i) {
          const int column = line_of(first + i), row = place_of(first + i);
          if (!is_whole && (column >= num_columns || row >= num_rows)) continue;
          held[i] = load_item<T>(from + column * params.column_strides[outputs + k] +
                                 row * int64(sizeof(T)));
        }
#pragma unroll
        for (int i = 0; i < items; ++i) {
          const int column = line_of(first + i), row = place_of(first + i);
          if (!is_whole && (column >= num_columns || row >= num_rows)) continue;
          *reinterpret_cast<T*>(tile + column * pitch(sizeof(T)) + row * int(sizeof(T))) = held[i];
        }
      }
    }
  }

  // Takes some of a thread's elements of an input, along rows.
  template <bool is_whole, int k, class T, class Operands>
  __device__ Pack<T, items> take(const Operands& params, int first) const {
    const unsigned char* from = params.pointers.input[k] + offsets[outputs + k];
    const unsigned char* tile = shared.tiles + begin_of(k);
    Pack<T, items> held;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const int row = line_of(first + i), column = place_of(first + i);
      if (!is_whole && (row >= num_rows || column >= num_columns)) continue;
      if constexpr (is_turned(k)) {
        const unsigned char* at = tile + column * pitch(sizeof(T)) + row * int(sizeof(T));
        held.items[i] = *reinterpret_cast<const T*>(at);
      } else {
        held.items[i] = load_element(Sources<T>{from + row * params.row_strides[outputs + k] +
                                                column * params.column_strides[outputs + k]});
      }
    }
    return held;
  }

  template <bool is_whole, class Operands, class... Packs>
  __device__ void store(const Operands& params, int first, const Packs&... packs) const {
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const int row = line_of(first + i), column = place_of(first + i);
      if (!is_whole && (row >= num_rows || column >= num_columns)) continue;
      const Output result = Op::apply(packs.items[i]...);
      auto offset = [&](auto leaf) {
        return offsets[leaf.value] + row * params.row_strides[leaf.value] +
               column * params.column_strides[leaf.value];
      };
      store_element(targets_at<Output>(params.pointers, offset), result);
    }
  }

  template <bool is_whole, class Operands, int... k>
  __device__ void run(const Operands& params, Indices<k...>) {
    (fill<is_whole, k, Inputs>(params), ...);
    ptx::syncthreads();
#pragma unroll 1
    for (int first = 0; first < per_thread; first += items) {
      store<is_whole>(params, first, take<is_whole, k, Inputs>(params, first)...);
    }
  }
};

template <class Policy, int turned, template <int> class Batch, class Op, class Output,
          class... Inputs>
__global__ void __launch_bounds__(Policy::block_threads) transform_turned_kernel(
    const __grid_constant__
        ParamsFor<Op, TurnedOperands<num_leaves<Output>, int(sizeof...(Inputs)), Batch>>
            params) {
  take_numbers<Op>(params);
  using Work = TurnedTransform<Policy, turned, Op, Output, Inputs...>;
  Work work(params, ptx::shared_memory<typename Work::Shared>());
  const typename MakeIndices<sizeof...(Inputs)>::type inputs;
  if (work.num_rows == Policy::side && work.num_columns == Policy::side) {
    work.template run<true>(params, inputs);
  } else {
    work.template run<false>(params, inputs);
  }
}

}  // namespace gpualgo

#endif
