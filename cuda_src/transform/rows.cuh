// Transformation of operands in rows: what is repeated, has gaps or is padded, in any dimensions.
//
// Algorithm  A thread loads `loads_in_flight` packs of neighbours in a row, as they lie in each
//            operand: without gaps (up to 16 bytes at once), one for the whole row, or in even
//            steps. Of a pack the row is found by one division, the row's place by a layout. Where
//            packs are single elements, a thread takes all of its own from one row, if rows are
//            long enough, and finds that row once.
// Bytes, in place, operator: as transform/kernel.cuh.
#ifndef GPUALGO_TRANSFORM_ROWS_CUH
#define GPUALGO_TRANSFORM_ROWS_CUH

#include "parts/layout.cuh"
#include "transform/kernel.cuh"

namespace gpualgo {

// in_rows: a thread's packs lie in one row; else packs are numbered through all rows.
template <int block_threads_, int loads_in_flight_, int items_, bool in_rows_>
struct RowsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads_in_flight = loads_in_flight_;  // packs per thread
  static constexpr int items = items_;                      // elements per pack
  static constexpr bool in_rows = in_rows_;
};

// Operands are the outputs and then the inputs. Rows are a Layout or an EvenLayout.
template <int outputs, int inputs, template <int> class Rows>
struct RowOperands {
  TransformPointers<outputs, inputs> pointers;
  int64 num_packs;
  Divisor packs_per_row;
  int64 steps[outputs + inputs];  // bytes from an element of a row to the next
  Rows<outputs + inputs> rows;
  // If a thread's packs lie in one row:
  int64 num_rows, rows_per_block;
  int64 lanes, lanes_inverse;  // threads that take packs of one row; 2^16 / lanes, rounded up
  Divisor tiles_per_row;
};

// How an operand lies in a row, as a bit of each: no gaps, or the same element all along. Else, in
// even steps.
template <int dense_, int repeated_>
struct RowKinds {
  static constexpr int dense = dense_, repeated = repeated_;
};

template <class Policy, class Kinds, class Op, class Output, class... Inputs>
struct RowTransform {
  static constexpr int items = Policy::items;
  static constexpr int loads = Policy::loads_in_flight;
  static constexpr int outputs = num_leaves<Output>;
  static constexpr int operands = outputs + int(sizeof...(Inputs));
  static constexpr int all_outputs = (1 << outputs) - 1;

  template <class T>
  struct Held {
    Pack<T, items> packs[loads];
  };

  // The packs of a thread: where they lie in each operand.
  struct Places {
    int64 offsets[loads][operands];
    int count;  // of the packs that there are
  };

  // What a block takes of rows: a tile of each of some.
  struct RowTile {
    int64 row, first, size;  // the first row; the first pack of a row; packs of a tile

    template <class Operands>
    __device__ explicit RowTile(const Operands& operands) : size(loads * operands.lanes) {
      const int64 group = operands.tiles_per_row.divide(blockIdx.x);
      row = group * operands.rows_per_block;
      first = (blockIdx.x - group * operands.tiles_per_row.value) * size;
    }
  };

  // Whether all threads of the block have all packs.
  template <class Operands>
  __device__ static bool is_whole_block(const Operands& operands) {
    if constexpr (Policy::in_rows) {
      const RowTile tile(operands);
      return operands.rows_per_block * operands.lanes == Policy::block_threads &&
             tile.row + operands.rows_per_block <= operands.num_rows &&
             tile.first + tile.size <= operands.packs_per_row.value;
    } else {
      return int64(blockIdx.x + 1) * Policy::block_threads * loads <= operands.num_packs;
    }
  }

  // Here and below `is_whole`: a thread has all packs.
  template <bool is_whole, class Operands>
  __device__ static Places places(const Operands& operands) {
    Places result;
    result.count = 0;
    const int64 begin = int64(blockIdx.x) * Policy::block_threads * loads + threadIdx.x;
#pragma unroll
    for (int load = 0; load < loads; ++load) {
      const int64 pack = begin + load * Policy::block_threads;
      if (!is_whole && pack >= operands.num_packs) break;
      const int64 row = operands.packs_per_row.divide(pack);
      const int64 first = (pack - row * operands.packs_per_row.value) * items;
      operands.rows.offsets(row, result.offsets[load]);
#pragma unroll
      for (int i = 0; i < RowTransform::operands; ++i) {
        result.offsets[load][i] += first * operands.steps[i];
      }
      result.count = load + 1;
    }
    return result;
  }

  // The same where a thread's packs lie in one row.
  template <bool is_whole, class Operands>
  __device__ static Places places_in_row(const Operands& operands) {
    const RowTile tile(operands);
    const int lanes = int(operands.lanes);
    const int row_of_block = threadIdx.x * uint32(operands.lanes_inverse) >> 16;
    const int64 row = tile.row + row_of_block;
    const int64 first = tile.first + (int(threadIdx.x) - row_of_block * lanes);
    Places result;
    operands.rows.offsets(row, result.offsets[0]);
#pragma unroll
    for (int i = 0; i < RowTransform::operands; ++i) {
      const int64 step = items * operands.steps[i];
      result.offsets[0][i] += first * step;
#pragma unroll
      for (int load = 1; load < loads; ++load) {
        result.offsets[load][i] = result.offsets[load - 1][i] + lanes * step;
      }
    }
    const bool is_there = row_of_block < operands.rows_per_block && row < operands.num_rows;
    const int64 end = is_there ? operands.packs_per_row.value : 0;
    result.count = 0;
#pragma unroll
    for (int load = 0; load < loads; ++load) {
      if (is_whole || first + load * lanes < end) result.count = load + 1;
    }
    return result;
  }

  template <bool is_whole, int k, class T, class Operands>
  __device__ static Held<T> load(const Operands& operands, const Places& places) {
    constexpr int operand = outputs + k;
    Held<T> held;
#pragma unroll
    for (int load = 0; load < loads; ++load) {
      if (!is_whole && load >= places.count) break;
      const unsigned char* at = operands.pointers.input[k] + places.offsets[load][operand];
      if constexpr (Kinds::dense >> operand & 1) {
        held.packs[load] = load_leaves<T, items, true>(Sources<T>{at});
      } else {
        constexpr bool is_repeated = Kinds::repeated >> operand & 1;
        T element = load_element(Sources<T>{at});
#pragma unroll
        for (int i = 0; i < items; ++i) {
          if (!is_repeated && i > 0) {
            element = load_element(Sources<T>{at + i * operands.steps[operand]});
          }
          held.packs[load].items[i] = element;
        }
      }
    }
    return held;
  }

  template <bool is_whole, class Operands, class... Helds>
  __device__ static void store(const Operands& operands, const Places& places,
                               const Helds&... helds) {
#pragma unroll
    for (int load = 0; load < loads; ++load) {
      if (!is_whole && load >= places.count) break;
      Pack<Output, items> result;
#pragma unroll
      for (int i = 0; i < items; ++i) result.items[i] = Op::apply(helds.packs[load].items[i]...);
      const int64(&offsets)[RowTransform::operands] = places.offsets[load];
      if constexpr ((Kinds::dense & all_outputs) == all_outputs) {
        store_leaves(
            targets_at<Output>(operands.pointers, [&](auto leaf) { return offsets[leaf.value]; }),
            result);
      } else {
#pragma unroll
        for (int i = 0; i < items; ++i) {
          auto offset = [&](auto leaf) {
            return offsets[leaf.value] + i * operands.steps[leaf.value];
          };
          store_element(targets_at<Output>(operands.pointers, offset), result.items[i]);
        }
      }
    }
  }

  template <bool is_whole, class Operands, int... k>
  __device__ static void run(const Operands& operands, Indices<k...>) {
    Places at;
    if constexpr (Policy::in_rows) {
      at = places_in_row<is_whole>(operands);
    } else {
      at = places<is_whole>(operands);
    }
    store<is_whole>(operands, at, load<is_whole, k, Inputs>(operands, at)...);
  }
};

template <class Policy, class Kinds, template <int> class Rows, class Op, class Output,
          class... Inputs>
__global__ void __launch_bounds__(Policy::block_threads) transform_rows_kernel(
    const __grid_constant__
        ParamsFor<Op, RowOperands<num_leaves<Output>, int(sizeof...(Inputs)), Rows>>
            operands) {
  take_numbers<Op>(operands);
  using Run = RowTransform<Policy, Kinds, Op, Output, Inputs...>;
  const typename MakeIndices<sizeof...(Inputs)>::type inputs;
  if (Run::is_whole_block(operands)) {
    Run::template run<true>(operands, inputs);
  } else {
    Run::template run<false>(operands, inputs);
  }
}

}  // namespace gpualgo

#endif
