// Scan of lines that lie side by side: the next line is nearer in memory than the next element.
//
// Algorithm  A tile of rows (elements of one number) and columns (lines) in shared memory; a thread
//            has a segment of the rows of `items` columns, and segments join column by column. A
//            column of several tiles goes from tile to tile by decoupled look-back (see
//            scan/tiles.cuh): a tile waits until one of the nearest before it has published its
//            prefix, and those between them their aggregates. Tiles of the same rows are taken one
//            after the other. scan/walks.cuh serves very many or short lines.
// Bytes      sizeof(T) + sizeof(A) per element; launches: one. Temporary storage: where a column
//            takes several tiles, 8 bytes for each 32 bits of a tile's row, and 256.
// Operator   As scan/tiles.cuh. A column past the last one repeats the last one's elements.
// Bits       Aggregates are folded strictly from left to right; shape and types alone make the cut.
// Length     More than 300 lines: all are steps of one tile, in the shared memory that they divide.
#ifndef GPUALGO_SCAN_COLUMNS_CUH
#define GPUALGO_SCAN_COLUMNS_CUH

#include "parts/lookback.cuh"
#include "parts/ptx.cuh"
#include "scan/walks.cuh"

namespace gpualgo {

// in_bytes and out_bytes: the units in which rows travel, of which addresses and distances are
// multiples; 0: element by element, with gaps or without.
template <int block_threads_, int width_, int items_, int segment_rows_, int looks_, int in_bytes_,
          int out_bytes_, bool is_async_, int min_blocks_, int shared_bytes_>
struct ScanColumnsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int width = width_;  // threads across; 0: one for each column, all in a tile
  static constexpr int items = items_;  // neighbouring columns of a thread
  static constexpr int segment_rows = segment_rows_;  // of a thread
  static constexpr int looks = looks_;                // states that a thread reads at once
  static constexpr int in_bytes = in_bytes_;
  static constexpr int out_bytes = out_bytes_;
  static constexpr bool is_async = is_async_;     // loads past the registers (sm_80)
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
};

template <class A, class T>
struct ScanColumnsParams {
  static constexpr int leaves = num_leaves<T>;
  ScanCommon<A, T> common;
  int64 num_rows, num_tiles;
  int64 num_chunks;                  // tiles to a column
  int64 num_words;                   // of the states
  int64 segments;                    // of a narrow tile
  int64 is_flipped;                  // in shared memory the rows of a narrow tile stand in reverse
  int64 row_strides[2 * leaves];     // bytes: inputs, outputs
  int64 column_strides[2 * leaves];  // bytes; of elements that lie apart
  Divisor num_columns;               // of a batch
  Divisor tiles_per_chunk;           // of all batches
  Divisor num_strips;                // of a batch
  Layout<2 * leaves> batches;
};

constexpr int max_scan_columns = 64;  // threads across a tile
constexpr int joined_bytes = 64;      // of values that a look-back takes from shared memory at once

template <class A, class T, int threads, int looks, int tile_items, int items>
struct ScanColumnsShared {
  alignas(16) T elements[tile_items];
  // Results take their elements' place where they fit.
  alignas(16) A results[sizeof(A) == sizeof(T) ? 1 : tile_items];
  // The segments' folds, twice; then what the tiles before have published.
  alignas(16) Pack<A, items> values[(looks > 2 ? looks : 2) * threads];
  alignas(16) Pack<A, items> before[max_scan_columns];
  int nearest[2][max_scan_columns];  // distance to the nearest prefix
  int missing[2][max_scan_columns];  // to the nearest tile that has published nothing
  uint32 tile;
};

template <class Policy, bool is_exclusive, class Op, class A, class T>
struct ScanColumns {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr bool is_narrow = Policy::width == 0;
  static constexpr int tile_items = threads * Policy::segment_rows * items;
  static constexpr int far = 1 << 30;
  static constexpr int leaves = num_leaves<T>;
  using Columns = Pack<A, items>;
  using Before = Running<Each<Op>, Columns>;
  using Shared = ScanColumnsShared<A, T, threads, Policy::looks, tile_items, items>;
  static_assert(sizeof(Shared) <= Policy::shared_bytes);
  static_assert(is_narrow ? items == 1 : Policy::width <= max_scan_columns);

  const ScanColumnsParams<A, T>& params;
  Shared& shared;
  int width = is_narrow ? int(params.num_columns.value) : Policy::width;  // in threads
  int segments = is_narrow ? int(params.segments) : threads / Policy::width;
  int segment = threadIdx.x / width, group = threadIdx.x % width;

  struct Tile {
    int64 index, chunk;
    int rows, columns;  // of the tile, as far as there are any
    Sources<T> input;
    Targets<A> output;
  };

  // Where an element lies, from a first one on; side: 0 of inputs, `leaves` of outputs.
  template <int side, class Places>
  __device__ Places at(const Places& first, int64 row, int64 column) const {
    const auto in_row =
        moved(first, [&](auto leaf) { return row * params.row_strides[side + leaf.value]; });
    return moved(in_row,
                 [&](auto leaf) { return column * params.column_strides[side + leaf.value]; });
  }

  __device__ Tile tile_at(int64 index) const {
    Tile tile;
    tile.index = index;
    tile.chunk = params.tiles_per_chunk.divide(index);
    const int64 within = index - tile.chunk * params.tiles_per_chunk.value;
    const int64 batch = params.num_strips.divide(within);
    const int64 column = (within - batch * params.num_strips.value) * (width * items);
    const int64 row = tile.chunk * (segments * Policy::segment_rows);
    const int64 rows = params.num_rows - row, columns = params.num_columns.value - column;
    tile.rows =
        rows < segments * Policy::segment_rows ? int(rows) : segments * Policy::segment_rows;
    tile.columns = columns < width * items ? int(columns) : width * items;
    int64 offsets[2 * leaves];
    params.batches.offsets(batch, offsets);
    tile.input = moved(params.common.input, [&](auto leaf) { return offsets[leaf.value]; });
    tile.output =
        moved(params.common.output, [&](auto leaf) { return offsets[leaves + leaf.value]; });
    tile.input = at<0>(tile.input, row, column);
    tile.output = at<leaves>(tile.output, row, column);
    return tile;
  }

  // --- to shared memory and back

  // Calls move(row, unit) for all `valid` of the `units` of each of a wide tile's rows.
  template <int units, class Move>
  __device__ void for_each_unit(int rows, int valid, Move move) const {
    static_assert(threads % units == 0);
    const int unit = threadIdx.x % units;
    if (unit >= valid) return;
#pragma unroll 8
    for (int row = threadIdx.x / units; row < rows; row += threads / units) move(row, unit);
  }
  // Calls move(row, column) for all elements of a narrow tile.
  template <class Move>
  __device__ void for_each_element(const Tile& tile, Move move) const {
#pragma unroll 4
    for (int at = threadIdx.x; at < tile.rows * width; at += threads) {
      const int row = int(params.num_columns.divide(at));
      move(row, at - row * width);
    }
  }
  // Where a row begins in shared memory.
  __device__ int slot(const Tile& tile, int row) const {
    return (is_narrow && params.is_flipped ? tile.rows - 1 - row : row) * (width * items);
  }
  // How far the row with the lowest address is from the first.
  __device__ int64 to_lowest(const Tile& tile, int operand) const {
    return params.is_flipped ? (tile.rows - 1) * params.row_strides[operand] : 0;
  }

  __device__ void load(const Tile& tile) const {
    constexpr int bytes = Policy::in_bytes;
    auto* target = reinterpret_cast<unsigned char*>(shared.elements);
    auto move_element = [&](int row, int column) {
      const int there = column < tile.columns ? column : tile.columns - 1;
      copy_element<Policy::is_async>(shared.elements + slot(tile, row) + column,
                                     at<0>(tile.input, row, there));
    };
    if constexpr (bytes == 0 && is_narrow) {
      for_each_element(tile, move_element);
    } else if constexpr (bytes == 0) {
      // A thread's columns are all filled: with elements, as the operator sees nothing else.
      const int columns = (tile.columns + items - 1) / items * items;
      for_each_unit<Policy::width * items>(tile.rows, columns, move_element);
    } else if constexpr (is_narrow) {
      constexpr bool is_async = Policy::is_async && bytes >= 4;
      const unsigned char* source = tile.input.at[0] + to_lowest(tile, 0);
      const int size = tile.rows * width * int(sizeof(T)), whole = size / bytes * bytes;
#pragma unroll 8
      for (int at = threadIdx.x * bytes; at < whole; at += threads * bytes) {
        copy_to_shared<is_async, bytes>(target + at, source + at);
      }
      for (int at = whole + threadIdx.x * int(sizeof(T)); at < size; at += threads * sizeof(T)) {
        store_pack(target + at, load_pack<T, 1>(source + at));
      }
    } else {
      constexpr int units = Policy::width * items * int(sizeof(T)) / bytes;
      constexpr bool is_async = Policy::is_async && bytes >= 4;
      const int valid = tile.columns * int(sizeof(T)) / bytes;
      for_each_unit<units>(tile.rows, valid, [&](int row, int unit) {
        copy_to_shared<is_async, bytes>(
            target + (row * units + unit) * bytes,
            tile.input.at[0] + row * params.row_strides[0] + unit * bytes);
      });
    }
    end_copies<Policy::is_async>();
    wait_copies<Policy::is_async, 0>();
  }

  __device__ void store(const Tile& tile) const {
    constexpr int bytes = Policy::out_bytes;
    const A* results = results_of();
    const auto* source = reinterpret_cast<const unsigned char*>(results);
    auto move_element = [&](int row, int column) {
      store_leaves(at<leaves>(tile.output, row, column),
                   load_pack<A, 1>(results + slot(tile, row) + column));
    };
    if constexpr (bytes == 0 && is_narrow) {
      for_each_element(tile, move_element);
    } else if constexpr (bytes == 0) {
      for_each_unit<Policy::width * items>(tile.rows, tile.columns, move_element);
    } else if constexpr (is_narrow) {
      unsigned char* target = tile.output.at[0] + to_lowest(tile, 1);
      const int size = tile.rows * width * int(sizeof(A)), whole = size / bytes * bytes;
#pragma unroll 8
      for (int at = threadIdx.x * bytes; at < whole; at += threads * bytes) {
        store_pack(target + at, load_pack<uint8, bytes>(source + at));
      }
      for (int at = whole + threadIdx.x * int(sizeof(A)); at < size; at += threads * sizeof(A)) {
        store_pack(target + at, load_pack<A, 1>(source + at));
      }
    } else {
      constexpr int units = Policy::width * items * int(sizeof(A)) / bytes;
      const int valid = tile.columns * int(sizeof(A)) / bytes;
      for_each_unit<units>(tile.rows, valid, [&](int row, int unit) {
        store_pack(tile.output.at[0] + row * params.row_strides[1] + unit * bytes,
                   load_pack<uint8, bytes>(source + (row * units + unit) * bytes));
      });
    }
  }

  __device__ A* results_of() const {
    if constexpr (sizeof(A) == sizeof(T)) {
      return reinterpret_cast<A*>(shared.elements);
    } else {
      return shared.results;
    }
  }

  // --- the scan of a tile

  // How many rows of this thread's segment there are; 0 if it has no columns.
  __device__ int rows_of_segment(const Tile& tile) const {
    const int rest = tile.rows - segment * Policy::segment_rows;
    if (segment >= segments || group * items >= tile.columns || rest <= 0) return 0;
    return rest < Policy::segment_rows ? rest : Policy::segment_rows;
  }

  // This thread's elements of its segment's row number `row`, and where they lie.
  __device__ int place(const Tile& tile, int row) const {
    return slot(tile, segment * Policy::segment_rows + row) + group * items;
  }
  __device__ Columns element(const Tile& tile, int row) const {
    return convert_pack<A>(load_pack<T, items>(shared.elements + place(tile, row)));
  }

  __device__ Columns fold_segment(const Tile& tile, int rows) const {
    Columns value = element(tile, 0);
#pragma unroll 8
    for (int row = 1; row < rows; ++row) value = Each<Op>::apply(value, element(tile, row));
    return value;
  }

  // Joins the segments' folds; returns where shared.values then has those up to each segment.
  // All threads call it.
  __device__ Columns* join_segments(Columns value, bool is_active) const {
    Columns* current = shared.values;
    current[threadIdx.x] = value;
    ptx::syncthreads();
#pragma unroll 1
    for (int distance = 1; distance < segments; distance *= 2) {
      if (is_active && segment >= distance) {
        value = Each<Op>::apply(current[threadIdx.x - distance * width], value);
      }
      current = shared.values + (current == shared.values ? threads : 0);
      current[threadIdx.x] = value;
      ptx::syncthreads();
    }
    return current;
  }

  // Reads the tiles before until each column has a prefix among them and all aggregates after it.
  // Returns the last round; all threads call it.
  __device__ int look_back(const TileStates& states, const Tile& tile, bool has_columns) const {
    for (int round = 0;; ++round) {
      int* nearest = shared.nearest[round % 2];
      int* missing = shared.missing[round % 2];
      if (has_columns && segment < segments) {
        Tagged<Columns> loaded[Policy::looks];
#pragma unroll
        for (int k = 0; k < Policy::looks; ++k) {
          const int64 distance = 1 + segment + k * segments;
          const int64 back = distance < tile.chunk ? distance : tile.chunk;
          loaded[k] = states.load<Columns>(state_of(tile, back));
        }
#pragma unroll
        for (int k = 0; k < Policy::looks; ++k) {
          const int distance = 1 + segment + k * segments;
          if (distance > tile.chunk) continue;
          Columns value;
          const Status status = states.read(loaded[k], value);
          shared.values[(distance - 1) * width + group] = value;
          if (status == prefix) ptx::atom_min_relaxed_cta(nearest + group, distance);
          if (status == nothing) ptx::atom_min_relaxed_cta(missing + group, distance);
        }
      }
      ptx::syncthreads();
      bool is_there = true;
      if (threadIdx.x < width) {
        is_there = !has_columns || nearest[group] < missing[group];
        shared.nearest[(round + 1) % 2][group] = far;
        shared.missing[(round + 1) % 2][group] = far;
      }
      if (ptx::syncthreads_and(is_there)) return round;
    }
  }
  __device__ int64 state_of(const Tile& tile, int64 back) const {
    return (tile.index - back * params.tiles_per_chunk.value) * width + group;
  }

  // Leaves in shared.before what precedes a tile that is not its columns' first, and tells the
  // tiles behind it. All threads call it; `total`: the tile's own fold, of the first segment.
  __device__ void connect(const TileStates& states, const Tile& tile, const Columns& total) const {
    const bool has_columns = group * items < tile.columns;
    const bool is_teller = has_columns && segment == 0 && tile.chunk < params.num_chunks - 1;
    if (is_teller) states.publish(state_of(tile, 0), total, aggregate);
    const int round = look_back(states, tile, has_columns);
    if (has_columns && segment == 0) {
      int distance = shared.nearest[round % 2][group];
      Columns before = shared.values[(distance - 1) * width + group];
      // All tiles behind wait for this: loads run ahead of the operator.
      constexpr int most = joined_bytes / int(sizeof(Columns)), at_once = most < 1 ? 1 : most;
#pragma unroll 1
      for (; distance > at_once; distance -= at_once) {
        Columns values[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k) {
          values[k] = shared.values[(distance - 2 - k) * width + group];
        }
#pragma unroll
        for (int k = 0; k < at_once; ++k) before = Each<Op>::apply(before, values[k]);
      }
#pragma unroll 4
      for (--distance; distance > 0; --distance) {
        before = Each<Op>::apply(before, shared.values[(distance - 1) * width + group]);
      }
      shared.before[group] = before;
      if (is_teller) states.publish(state_of(tile, 0), Each<Op>::apply(before, total), prefix);
    }
    ptx::syncthreads();
  }

  __device__ void scan(const TileStates* states, const Tile& tile) const {
    if (threadIdx.x < width) shared.nearest[0][group] = shared.missing[0][group] = far;
    load(tile);
    ptx::syncthreads();
    const int rows = rows_of_segment(tile);
    Columns value{};
    if (rows > 0) value = fold_segment(tile, rows);
    const Columns* joined = join_segments(value, rows > 0);
    Before before = start_of<Op, items>(params.common);
    if (states != nullptr) {
      const int last = (tile.rows - 1) / Policy::segment_rows;
      Columns total{}, within{};
      if (segment == 0) assign(total, joined[last * width + group]);
      if (segment > 0 && rows > 0) assign(within, joined[threadIdx.x - width]);
      ptx::syncthreads();  // before the look-back takes the place of the folds
      if (tile.chunk > 0) {
        connect(*states, tile, total);
        if (rows > 0) assign(before, Before{shared.before[group], false});
      } else if (segment == 0 && rows > 0) {
        Before whole = before;
        whole.append(total);
        states->publish(state_of(tile, 0), whole.total, prefix);
      }
      if (segment > 0 && rows > 0) before.append(within);
    } else if (segment > 0 && rows > 0) {
      before.append(joined[threadIdx.x - width]);
    }
    A* results = results_of();
    scan_column<4, is_exclusive, Op, A, T, items>(
        0, rows, before,
        [&](int row) { return load_pack<T, items>(shared.elements + place(tile, row)); },
        [&](int row, const Columns& scanned) { store_pack(results + place(tile, row), scanned); });
    ptx::syncthreads();
    store(tile);
  }
};

template <class Policy, bool is_exclusive, class Op, class A, class T>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    scan_columns_kernel(const __grid_constant__ ParamsFor<Op, ScanColumnsParams<A, T>> params) {
  take_numbers<Op>(params);
  using Work = ScanColumns<Policy, is_exclusive, Op, A, T>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  const Work work{params, shared};
  if (params.num_chunks == 1) {
    work.scan(nullptr, work.tile_at(blockIdx.x));
    return;
  }
  const TileStates states(params.common.states);
  while (true) {
    if (threadIdx.x == 0) shared.tile = states.take();
    ptx::syncthreads();
    const int64 index = shared.tile;
    if (index >= params.num_tiles) break;
    work.scan(&states, work.tile_at(index));
    ptx::syncthreads();  // before the next tile takes this one's place
  }
  if (threadIdx.x == 0) states.finish(params.num_words);
}

}  // namespace gpualgo

#endif
