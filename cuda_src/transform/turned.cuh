// Transformation of operands whose neighbours lie along different axes: some inputs are turned.
//
// Algorithm  A block has a tile of rows and columns. Neighbours of the outputs lie along a row,
//            those of turned inputs down a column. A tile consists of 32 by 32 squares of `items`
//            by `items` elements. A thread loads the columns of a square of a turned input as
//            packs, turns it in registers and puts its rows into shared memory, from where it is
//            read as the other inputs are from global memory: lanes along rows. Squares of a row
//            of squares are rotated by its number, so that neither way meets a bank twice.
// Bytes      the sizes of all operands, per element; launches: one; temporary storage: none.
// In place   safe where an output and an input that is not turned are the same elements.
// Operator   as transform/kernel.cuh.
#ifndef GPUALGO_TRANSFORM_TURNED_CUH
#define GPUALGO_TRANSFORM_TURNED_CUH

#include "parts/layout.cuh"
#include "parts/warp.cuh"
#include "transform/kernel.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int squares_in_flight_>
struct TurnedPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;  // a square's side; rows and columns have multiples of it
  static constexpr int squares_in_flight = squares_in_flight_;  // that a thread combines at once
};

// How inputs lie, as a bit of each: along columns; along rows, in packs that are loaded at once.
// Else, their elements are loaded one by one.
template <int turned_, int packed_>
struct TurnedKinds {
  static constexpr int turned = turned_, packed = packed_;
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

template <class Policy, class Kinds, class Op, class Output, class... Inputs>
struct TurnedTransform {
  static constexpr int items = Policy::items;
  static constexpr int squares = 32;  // of a tile, along each side
  static constexpr int side = squares * items;
  static constexpr int outputs = num_leaves<Output>;
  static constexpr int operands = outputs + int(sizeof...(Inputs));
  static constexpr int height = Policy::block_threads / warp_threads;  // lines of squares at once
  static constexpr int per_thread = squares / height;
  static constexpr int in_flight = Policy::squares_in_flight;
  static_assert(squares == warp_threads && per_thread % in_flight == 0);

  __device__ static constexpr bool is_turned(int input) { return Kinds::turned >> input & 1; }
  // Where an input's tile begins.
  __device__ static constexpr int begin_of(int input) {
    constexpr int sizes[] = {int(sizeof(Inputs))...};
    int end = 0;
    for (int i = 0; i < input; ++i) {
      if (is_turned(i)) end += side * side * sizes[i];
    }
    return end;
  }
  struct Shared {
    alignas(16) unsigned char tiles[begin_of(sizeof...(Inputs))];
  };

  template <class T>
  struct Square {
    Pack<T, items> lines[items];
  };
  template <class T>
  struct Held {
    Square<T> squares[in_flight];
  };

  Shared& shared;
  int64 offsets[operands];           // of the tile's first element
  int squares_down, squares_across;  // of the tile
  int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;

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
    squares_down = limited(params.num_rows - row);
    squares_across = limited(params.num_columns - column);
  }
  __device__ static int limited(int64 rest) { return rest < side ? int(rest) / items : squares; }

  // The pack of a line of a square, in an input's tile.
  template <int k, class T>
  __device__ Pack<T, items>& pack_at(int down, int across, int line) const {
    const int place = (down * items + line) * squares + (across + down) % squares;
    return reinterpret_cast<Pack<T, items>*>(shared.tiles + begin_of(k))[place];
  }

  // Brings the tile of an input that is turned to shared memory. Here and below `is_whole`: a tile
  // has all squares.
  template <bool is_whole, int k, class T, class Operands>
  __device__ void fill(const Operands& params) const {
    if constexpr (is_turned(k)) {
      const int64 stride = params.column_strides[outputs + k];
      const unsigned char* from =
          params.pointers.input[k] + offsets[outputs + k] + lane * items * int(sizeof(T));
      Square<T> held[per_thread];
#pragma unroll
      for (int i = 0; i < per_thread; ++i) {
        const int across = warp + i * height;
        if (!is_whole && (across >= squares_across || lane >= squares_down)) continue;
        const unsigned char* at = from + across * items * stride;
#pragma unroll
        for (int j = 0; j < items; ++j) {
          held[i].lines[j] = load_leaves<T, items, true>(Sources<T>{at + j * stride});
        }
      }
#pragma unroll
      for (int i = 0; i < per_thread; ++i) {
        const int across = warp + i * height;
        if (!is_whole && (across >= squares_across || lane >= squares_down)) continue;
#pragma unroll
        for (int line = 0; line < items; ++line) {
          Pack<T, items> turned;
#pragma unroll
          for (int j = 0; j < items; ++j) turned.items[j] = held[i].lines[j].items[line];
          pack_at<k, T>(lane, across, line) = turned;
        }
      }
    }
  }

  // Takes some of a thread's squares of an input, by rows.
  template <bool is_whole, int k, class T, class Operands>
  __device__ Held<T> take(const Operands& params, int first) const {
    constexpr int operand = outputs + k;
    Held<T> held;
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      const int down = warp + (first + i) * height;
      if (!is_whole && (down >= squares_down || lane >= squares_across)) continue;
      const unsigned char* at = params.pointers.input[k] + offsets[operand] +
                                down * items * params.row_strides[operand] +
                                lane * items * params.column_strides[operand];
#pragma unroll
      for (int line = 0; line < items; ++line) {
        Pack<T, items>& pack = held.squares[i].lines[line];
        const unsigned char* row = at + line * params.row_strides[operand];
        if constexpr (is_turned(k)) {
          pack = pack_at<k, T>(down, lane, line);
        } else if constexpr (Kinds::packed >> k & 1) {
          pack = load_leaves<T, items, true>(Sources<T>{row});
        } else {
#pragma unroll
          for (int j = 0; j < items; ++j) {
            pack.items[j] = load_element(Sources<T>{row + j * params.column_strides[operand]});
          }
        }
      }
    }
    return held;
  }

  template <bool is_whole, class Operands, class... Helds>
  __device__ void store(const Operands& params, int first, const Helds&... helds) const {
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      const int down = warp + (first + i) * height;
      if (!is_whole && (down >= squares_down || lane >= squares_across)) continue;
#pragma unroll
      for (int line = 0; line < items; ++line) {
        Pack<Output, items> result;
#pragma unroll
        for (int j = 0; j < items; ++j) {
          result.items[j] = Op::apply(helds.squares[i].lines[line].items[j]...);
        }
        auto offset = [&](auto leaf) {
          constexpr int size = sizeof(Leaf<Output, decltype(leaf)::value>);
          return offsets[leaf.value] + (down * items + line) * params.row_strides[leaf.value] +
                 lane * items * size;
        };
        store_leaves(targets_at<Output>(params.pointers, offset), result);
      }
    }
  }

  template <bool is_whole, class Operands, int... k>
  __device__ void run(const Operands& params, Indices<k...>) const {
    (fill<is_whole, k, Inputs>(params), ...);
    ptx::syncthreads();
#pragma unroll 1
    for (int first = 0; first < per_thread; first += in_flight) {
      store<is_whole>(params, first, take<is_whole, k, Inputs>(params, first)...);
    }
  }
};

template <class Policy, class Kinds, template <int> class Batch, class Op, class Output,
          class... Inputs>
__global__ void __launch_bounds__(Policy::block_threads) transform_turned_kernel(
    const __grid_constant__
        ParamsFor<Op, TurnedOperands<num_leaves<Output>, int(sizeof...(Inputs)), Batch>>
            params) {
  take_numbers<Op>(params);
  using Work = TurnedTransform<Policy, Kinds, Op, Output, Inputs...>;
  const Work work(params, ptx::shared_memory<typename Work::Shared>());
  const typename MakeIndices<sizeof...(Inputs)>::type inputs;
  if (work.squares_down == Work::squares && work.squares_across == Work::squares) {
    work.template run<true>(params, inputs);
  } else {
    work.template run<false>(params, inputs);
  }
}

}  // namespace gpualgo

#endif
