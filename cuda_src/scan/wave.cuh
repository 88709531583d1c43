// Scan of few long lines that are small enough to be in registers at once.
//
// Algorithm  A block has one tile. Its warps load rows of vectors, scan all of them side by side
//            and join in shared memory; the block publishes the tile's aggregate, folds those of
//            the line's earlier tiles as soon as they are there, and writes the tile. A block
//            waits for blocks of lower numbers only, which begin before it.
// Bytes      As scan/tiles.cuh; temporary storage too.
// Operator   As scan/tiles.cuh.
// Bits       A tile depends on length and types alone, and so do the groups in which aggregates are
//            folded.
#ifndef GPUALGO_SCAN_WAVE_CUH
#define GPUALGO_SCAN_WAVE_CUH

#include "parts/convert.cuh"
#include "parts/intrinsics.cuh"
#include "parts/lookback.cuh"
#include "parts/ptx.cuh"
#include "scan/computed_lines.cuh"
#include "scan/lines.cuh"
#include "scan/stepped_lines.cuh"

namespace gpualgo {

template <int block_threads_, int rows_, int min_blocks_>
struct ScanWavePolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int rows = rows_;              // of a warp: each 32 vectors of 16 bytes
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
};

namespace detail {

template <class A, int warps, int row_bytes>
struct ScanWaveShared {
  alignas(16) unsigned char rows[warps][row_bytes];
  A totals[warps];
  A joined[warps];
};

}  // namespace detail

template <class Policy, bool is_exclusive, class Op, class A, class T, class Access>
struct ScanWave {
  using E = Held<T>;  // an element
  using S = Stretch<A, E, 1, Access::is_reversed>;
  static constexpr int items = S::vector_items;
  static constexpr int rows = Policy::rows;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr int warp_items = rows * S::warp_items;
  static constexpr int tile_items = warps * warp_items;
  using Shared = detail::ScanWaveShared<A, warps, S::warp_items * S::widest>;

  const ScanTilesParams<A, T, Access>& params;
  Shared& shared;
  int64 line, begin;  // where this warp's elements begin
  int part;           // the tile's number in its line
  int count;          // of the tile's elements, from this warp's on
  Pack<E, items> packs[rows];
  A within[rows];  // the fold of the tile's elements before this lane's, if there are any
  int warp = threadIdx.x / warp_threads;
  int lane = threadIdx.x % warp_threads;

  __device__ static int limited(int value, int most) {
    return value <= 0 ? 0 : value < most ? value : most;
  }
  __device__ int items_of_row(int row) const {
    return limited(count - row * S::warp_items, S::warp_items);
  }
  __device__ int items_of_lane(int row) const { return S::items_of_lane(items_of_row(row)); }
  __device__ bool is_first(int row) const { return row == 0 && threadIdx.x == 0; }
  __device__ int64 start_of(int row) const { return begin + row * S::warp_items; }

  // Rows are in registers, which have no index: for loops that are not unrolled.
  template <class U>
  __device__ static U take(const U (&values)[rows], int row) {
    U value = values[0];
#pragma unroll
    for (int i = 1; i < rows; ++i) {
      if (i == row) value = values[i];
    }
    return value;
  }
  template <class U>
  __device__ static void put(U (&values)[rows], int row, const U& value) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (i == row) values[i] = value;
    }
  }

  // Loads the warp's elements, and folds each vector.
  __device__ void load(A (&sums)[rows]) {
    const Sources<T> input = params.access.source(params.common.input, line);
    if constexpr (Access::is_flat) {
      if (count >= warp_items) {
#pragma unroll
        for (int row = 0; row < rows; ++row) {
          packs[row] = params.access.template load_vector<S>(input, start_of(row));
        }
#pragma unroll
        for (int row = 0; row < rows; ++row) sums[row] = fold_pack<Op, A>(packs[row]);
        return;
      }
    }
    E* staged = reinterpret_cast<E*>(shared.rows[warp]);
#pragma unroll 1
    for (int row = 0; row < rows && items_of_row(row) > 0; ++row) {
      CopyBarrier none;
      params.access.template load<S, Transfer::direct>(staged, input, start_of(row),
                                                       items_of_row(row), none);
      ptx::syncwarp();
      const Pack<E, items> pack = S::load(staged, 0);
      ptx::syncwarp();
      put(packs, row, pack);
      const int mine = items_of_lane(row);
      if (mine == items) {
        put(sums, row, fold_pack<Op, A>(pack));
      } else if (mine > 0) {
        put(sums, row, fold_some<Op, A>(pack, mine));
      }
    }
  }

  // Folds the warp's elements; fills `within` as far as the warp knows.
  __device__ A summarise() {
    A sums[rows] = {};
    load(sums);
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const A other = shuffle_up(sums[row], delta);
        if (lane >= delta && items_of_lane(row) > 0) sums[row] = Op::apply(other, sums[row]);
      }
    }
    A total{};
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int active = S::active_lanes(items_of_row(row));
      const A whole = shuffle(sums[row], active == 0 ? 0 : active - 1);
      const A before = shuffle_up(sums[row], 1);
      within[row] = total;
      if (lane > 0 && lane < active) within[row] = row == 0 ? before : Op::apply(total, before);
      if (active > 0) total = row == 0 ? whole : Op::apply(total, whole);
    }
    return total;
  }

  // Joins the warps' totals; returns the tile's. `count_of_tile` is at least one.
  __device__ A join_warps(const A& total, int count_of_tile) {
    if (lane == 0) shared.totals[warp] = total;
    ptx::syncthreads();
    const int active = (count_of_tile + warp_items - 1) / warp_items;
    A value = shared.totals[lane < warps ? lane : 0];
    value = scan_group<warp_threads, Op>(value, active);
    const A before = shuffle(value, warp == 0 ? 0 : warp - 1);
    if (warp > 0) {
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const bool is_start = row == 0 && lane == 0;  // of the warp: nothing is within
        if (items_of_lane(row) > 0) {
          within[row] = is_start ? before : Op::apply(before, within[row]);
        }
      }
    }
    return shuffle(value, active - 1);
  }

  // Writes the warp's elements; `before` is what precedes the tile.
  __device__ void store(const Running<Op, A>& before) {
    const Targets<A> output = params.access.target(params.common.output, line);
    if constexpr (Access::stores_vectors) {
      // Only a line's first element may have nothing before it.
      if (count >= warp_items && (!before.is_empty || warp > 0)) {
#pragma unroll
        for (int row = 0; row < rows; ++row) {
          Running<Op, A> running = before;
          if (!is_first(row)) running.append(within[row]);
          running.is_empty = false;  // which the compiler cannot see
          params.access.template store_vector<S>(output, start_of(row),
                                                 scan_pack(packs[row], items, running));
        }
        return;
      }
    }
    A* staged = reinterpret_cast<A*>(shared.rows[warp]);
#pragma unroll 1
    for (int row = 0; row < rows && items_of_row(row) > 0; ++row) {
      Running<Op, A> running = before;
      const int mine = items_of_lane(row);
      if (mine > 0 && !is_first(row)) running.append(take(within, row));
      S::store(staged, 0, scan_pack(take(packs, row), mine, running));
      ptx::syncwarp();
      params.access.template store<S, Transfer::direct>(staged, output, start_of(row),
                                                        items_of_row(row));
      ptx::syncwarp();
    }
  }

  __device__ static Pack<A, items> scan_pack(const Pack<E, items>& pack, int mine,
                                             Running<Op, A> running) {
    Pack<A, items> scanned;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (i >= mine) break;
      const A old = running.total;
      running.append(convert<A>(pack.items[i]));
      scanned.items[i] = is_exclusive ? old : running.total;
    }
    return scanned;
  }
};

template <class Policy, bool is_exclusive, class Op, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    scan_wave_kernel(const __grid_constant__ ParamsFor<Op, ScanTilesParams<A, T, Access>> params) {
  take_numbers<Op>(params);
  using Work = ScanWave<Policy, is_exclusive, Op, A, T, Access>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  const TileStates states(params.common.states);
  const int tiles_per_line = int(params.tiles_per_line.value);
  const int tile = blockIdx.x;
  const int64 line = params.tiles_per_line.divide(tile);
  const int part = int(tile - line * tiles_per_line);
  const int64 begin = int64(part) * Work::tile_items;
  const int64 rest = params.num_items - begin;
  const int count = rest < Work::tile_items ? int(rest) : Work::tile_items;
  const int start = int(threadIdx.x / warp_threads) * Work::warp_items;
  Work work{params, shared, line, begin + start, part, count - start};

  const A total = work.join_warps(work.summarise(), count);
  Running<Op, A> before{A{}};
  if (has_init(params.common)) before.append(read_init(params.common));
  if (tiles_per_line > 1) {
    if (threadIdx.x == 0) states.publish(tile, total, aggregate);
    if (part > 0) {
      uint64* words = states.words() + int64(tile - part) * tagged_words<A>;
      before.append(join_tagged<false, Op, Policy::block_threads>(
          words, part, states.tag(aggregate), shared.joined));
    }
    states.finish_in_order<A, Policy::block_threads>(params.num_tiles, part, params.num_words);
  }
  work.store(before);
}

}  // namespace gpualgo

#endif
