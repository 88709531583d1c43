// Scan: y[i] = init (+) x[0] (+) … (+) x[i], or without the last: one pass over memory.
//
// Algorithm  scan_tiles_kernel, for few long lines: blocks take tiles in order and keep three (or
//            what fits) in shared memory: one that waits for what precedes it, one whose aggregate
//            is computed and published before that wait, one that is being loaded (single-pass
//            scan; Merrill and Garland, "Single-pass parallel prefix scan with decoupled
//            look-back", NVIDIA NVR-2016-002, 2016). Instead of every block looking back over its
//            predecessors, one further warp of the first block reads all aggregates in order and
//            hands each tile its prefix: hundreds of blocks that poll the same lines of L2 wait for
//            each other, one does not. Where each block has lines of its own, it walks them tile by
//            tile, and no block waits for another. scan/wave.cuh serves lines that are small
//            together, scan/rows.cuh many shorter lines of neighbours, scan/columns.cuh lines that
//            lie side by side.
//            An element that is a record lies in several arrays, its leaves (parts/leaves.cuh),
//            and in shared memory as one piece or (FlatLines) as it does there.
// Bytes      sizeof(T) + sizeof(A) per element; launches: one. Temporary storage: 8 bytes per tile
//            for each 32 bits of A, and 256.
// Operator   Associative. Elements are combined in order; it is never called on anything but
//            elements, init and its own results.
// Bits       Aggregates are folded strictly from left to right, and a tile depends on length and
//            types alone: so does the association.
#ifndef GPUALGO_SCAN_TILES_CUH
#define GPUALGO_SCAN_TILES_CUH

#include "parts/bulk_copy.cuh"
#include "parts/intrinsics.cuh"
#include "parts/lookback.cuh"
#include "parts/ptx.cuh"
#include "scan/computed_lines.cuh"
#include "scan/lines.cuh"
#include "scan/stepped_lines.cuh"

namespace gpualgo {

template <int block_threads_, int vectors_, Transfer transfer_, int stages_, int min_blocks_,
          int shared_bytes_>
struct ScanPolicy {
  static constexpr int block_threads = block_threads_;  // that scan; two more warps hand out
  static constexpr int vectors = vectors_;              // of 16 bytes per thread and tile; odd
  static constexpr Transfer transfer = transfer_;
  static constexpr int stages = stages_;          // tiles in shared memory: three, or what fits
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
};

namespace detail {

constexpr int scanning = 1;  // the barrier of the warps that scan
enum Action { summarise_tile, finish_tile, take_tile, end };
constexpr int scan_window = 2;  // states that a lane reads at once
constexpr int scan_span = scan_window * warp_threads;

template <class A, class T, int num_stages, int warps, int stretch_items>
struct ScanShared {
  alignas(16) T stages[num_stages][warps][stretch_items];
  // Results take their elements' place where they fit.
  alignas(
      16) A results[sizeof(A) == sizeof(T) ? 1 : warps][sizeof(A) == sizeof(T) ? 1 : stretch_items];
  alignas(16) A aggregates[scan_span];
  alignas(16) A prefixes[scan_span];
  A within[num_stages][warps * warp_threads];
  A totals[warps];
  // One more than stages: a warp may still read a tile's while the next tile of its stage is taken.
  A prefix[num_stages + 1];
  uint32 tiles[num_stages + 1];
  int actions[2];
  // What warps tell each other, by ld_relaxed_cta and st_relaxed_cta.
  int num_known;   // tiles that were taken
  int num_handed;  // tiles whose prefix is there
  int num_all;     // tiles of this block, once that is known
  bool is_first;   // this block has the first tile of all
  CopyBarrier arrivals[num_stages][warps];
};

}  // namespace detail

template <class Policy, bool is_exclusive, class Op, class A, class T, class Access>
struct ScanTiles {
  using E = Held<T>;  // an element
  using S = Stretch<A, E, Policy::vectors, Access::is_reversed>;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr int tile_items = warps * S::warp_items;
  static constexpr int stages = Policy::stages;
  static constexpr int slots = stages + 1;
  using Shared = detail::ScanShared<A, E, stages, warps, S::warp_items>;
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const ScanTilesParams<A, T, Access>& params;
  Shared& shared;
  TileStates states;
  int warp = threadIdx.x / warp_threads;

  struct Tile {
    int64 line, begin;
    int part, count;  // elements of the tile
    bool is_last;     // of its line
  };

  __device__ Tile tile_at(uint32 index) const {
    Tile tile;
    tile.line = params.tiles_per_line.divide(index);
    tile.part = int(index - tile.line * params.tiles_per_line.value);
    tile.begin = int64(tile.part) * tile_items;
    const int64 rest = params.num_items - tile.begin;
    tile.is_last = rest <= tile_items;
    tile.count = tile.is_last ? int(rest) : tile_items;
    return tile;
  }
  __device__ bool is_tile(uint32 index) const { return index < params.num_tiles; }
  // Elements of a tile that are this warp's.
  __device__ int count_of_warp(const Tile& tile) const {
    const int rest = tile.count - warp * S::warp_items;
    return rest <= 0 ? 0 : rest < S::warp_items ? rest : S::warp_items;
  }

  __device__ void load(uint32 index, int number) {
    if (!is_tile(index)) return;
    const Tile tile = tile_at(index);
    const int count = count_of_warp(tile);
    CopyBarrier& arrival = shared.arrivals[number % stages][warp];
    if (count > 0) {
      params.access.template load<S, Policy::transfer>(
          items(shared.stages[number % stages][warp]),
          params.access.source(params.common.input, tile.line), tile.begin + warp * S::warp_items,
          count, arrival);
    } else {
      end_load<Policy::transfer>(arrival);  // nothing came, but the phases go on
    }
  }

  // Folds a tile and publishes its aggregate. Keeps, for each thread, the fold of the tile's
  // elements before its own.
  __device__ void summarise(int number, int later) {
    const uint32 index = shared.tiles[number % slots];
    const Tile tile = tile_at(index);
    const int count = count_of_warp(tile);
    const int mine = S::items_of_lane(count);
    A value{};
    // What a warp copies by itself it waits for, even if that is nothing.
    if (count > 0 || is_record<E>) {
      await_load<Policy::transfer>(shared.arrivals[number % stages][warp], number / stages, later);
    }
    if (mine > 0) value = fold_lane<S, Op, A>(items(shared.stages[number % stages][warp]), mine);
    const int active = S::active_lanes(count);
    value = scan_group<warp_threads, Op>(value, active);
    if (int(threadIdx.x % warp_threads) == active - 1) shared.totals[warp] = value;
    const A before_lane = shuffle_up(value, 1);
    ptx::bar_sync(detail::scanning, Policy::block_threads);
    Running<Op, A> within{A{}};  // the first lane of all stores it, too, though nobody reads that
    if (count > 0) {
#pragma unroll 1
      for (int i = 0; i < warp; ++i) within.append(shared.totals[i]);
    }
    // The last warp that has elements knows the whole.
    const bool is_end = count > 0 && tile.count <= (warp + 1) * S::warp_items;
    if (is_end && threadIdx.x % warp_threads == 0) {
      Running<Op, A> whole = within;
      whole.append(shared.totals[warp]);
      if (is_chained()) {
        states.publish(index, whole.total, aggregate);
      } else if (!tile.is_last) {
        Running<Op, A> next = before_tile(tile, number);
        next.append(whole.total);
        shared.prefix[(number + 1) % slots] = next.total;
      }
    }
    if (mine > 0 && threadIdx.x % warp_threads > 0) within.append(before_lane);
    shared.within[number % stages][threadIdx.x] = within.total;
  }

  // Returns what precedes a tile whose prefix is there; with a value even where nothing precedes
  // the line: it is then the first exclusive result.
  __device__ Running<Op, A> before_tile(const Tile& tile, int number) const {
    Running<Op, A> before{A{}};
    if (tile.part > 0) {
      before.append(shared.prefix[number % slots]);
    } else if (has_init(params.common)) {
      before.append(read_init(params.common));
    }
    return before;
  }

  // Scans a tile whose prefix is there, and writes it.
  __device__ void finish(int number) {
    const uint32 index = shared.tiles[number % slots];
    const Tile tile = tile_at(index);
    const int count = count_of_warp(tile);
    if (count == 0) return;
    E* stretch = shared.stages[number % stages][warp];
    const auto results = items(result_stretch(stretch));
    const int mine = S::items_of_lane(count);
    Running<Op, A> before = before_tile(tile, number);
    // Of a lane without elements what precedes it is not known.
    if (mine > 0 && threadIdx.x > 0) before.append(shared.within[number % stages][threadIdx.x]);
    if (sizeof(A) != sizeof(E)) release();
    if (mine > 0) scan_lane<S, is_exclusive>(items(stretch), results, mine, before);
    if constexpr (Policy::transfer == Transfer::bulk) ptx::fence_proxy_async_shared_cta();
    ptx::syncwarp();
    params.access.template store<S, Policy::transfer>(
        results, params.access.target(params.common.output, tile.line),
        tile.begin + warp * S::warp_items, count);
  }

  // A stretch as its elements lie in it.
  template <class U>
  __device__ static auto items(U* stretch) {
    if constexpr (keeps_apart<Access>) {
      return ApartStretch<U, S::warp_items>{reinterpret_cast<unsigned char*>(stretch)};
    } else {
      return stretch;
    }
  }

  // Waits until a stretch that was written may be loaded anew.
  __device__ static void release() {
    if constexpr (Policy::transfer == Transfer::bulk) ptx::cp_async_bulk_wait_group_read<0>();
    ptx::syncwarp();
  }

  __device__ A* result_stretch(E* stretch) {
    if constexpr (sizeof(A) == sizeof(E)) {
      return reinterpret_cast<A*>(stretch);
    } else {
      return shared.results[warp];
    }
  }

  // The warps that scan. Whatever can be done is done, aggregates first: others wait for them.
  __device__ void scan_warps() {
    int num_taken = 0, num_summarised = 0, num_finished = 0;
    bool may_take = true;
    for (int turn = 0;; ++turn) {
      if (threadIdx.x == 0) {
        shared.actions[turn % 2] = choose(num_taken, num_summarised, num_finished, may_take);
      }
      ptx::syncwarp();
      ptx::bar_sync(detail::scanning, Policy::block_threads);
      const int action = shared.actions[turn % 2];
      if (action == detail::summarise_tile) {
        summarise(num_summarised, num_taken - num_summarised - 1);
        ++num_summarised;
      } else if (action == detail::finish_tile) {
        finish(num_finished);
        ++num_finished;
      } else if (action == detail::take_tile) {
        release();
        const uint32 index = shared.tiles[num_taken % slots];
        may_take = is_tile(index);
        if (may_take) load(index, num_taken++);
      } else {
        break;
      }
    }
    release();
  }

  // Takes the block's next tile: of all lines, or of the block's own, line by line.
  __device__ uint32 take(int num_taken) const {
    if (is_chained()) return states.take();
    const int64 line = params.tiles_per_line.divide(num_taken);  // of the block's
    const int64 others = blockIdx.x + line * (gridDim.x - 1);    // of other blocks, before it
    return uint32(num_taken + others * params.tiles_per_line.value);
  }
  // Whether blocks wait for tiles of others: there are states.
  __device__ bool is_chained() const { return params.num_words > 0; }

  // Decides what the warps do next; called by thread 0.
  __device__ int choose(int num_taken, int num_summarised, int num_finished, bool may_take) {
    while (true) {
      if (num_summarised < num_taken &&
          has_arrived<Policy::transfer>(shared.arrivals[num_summarised % stages][0],
                                        num_summarised / stages)) {
        return detail::summarise_tile;
      }
      if (may_take && num_taken < num_finished + stages) {
        // Taken when its loading can begin, so that aggregates come in the order of tiles.
        const uint32 index = take(num_taken);
        shared.tiles[num_taken % slots] = index;
        if (index == 0) ptx::st_relaxed_cta(&shared.is_first, true);
        ptx::threadfence_block();
        if (is_tile(index)) {
          ptx::st_relaxed_cta(&shared.num_known, num_taken + 1);
        } else {
          ptx::st_relaxed_cta(&shared.num_all, num_taken);
        }
        return detail::take_tile;
      }
      if (num_finished < num_summarised &&
          (!is_chained() || ptx::ld_relaxed_cta(&shared.num_handed) > num_finished)) {
        ptx::threadfence_block();
        return detail::finish_tile;
      }
      if (!may_take && num_finished == num_taken) return detail::end;
    }
  }

  // The warp that finds what precedes the block's tiles, one after the other.
  __device__ void find_prefixes() {
    for (int number = 0;; ++number) {
      if (!await_tile(number)) break;
      const uint32 index = shared.tiles[number % slots];
      A before{};
      if (tile_at(index).part > 0) {
        while (states.read(states.load<A>(index), before) != prefix) {
        }
      }
      if (threadIdx.x % warp_threads == 0) {
        shared.prefix[number % slots] = before;
        ptx::threadfence_block();
        ptx::st_relaxed_cta(&shared.num_handed, number + 1);
      }
      ptx::syncwarp();
    }
    // Nothing is read from the states any more. The last tile may still be on its way out.
    if (threadIdx.x % warp_threads == 0) states.finish(params.num_words);
  }

  // Waits until the block's tile of this number was taken; false if there is none.
  __device__ bool await_tile(int number) const {
    while (ptx::ld_relaxed_cta(&shared.num_known) <= number &&
           ptx::ld_relaxed_cta(&shared.num_all) > number) {
      ptx::nanosleep(32);
    }
    ptx::threadfence_block();
    return ptx::ld_relaxed_cta(&shared.num_known) > number;
  }

  // The warp that hands out prefixes: replaces each tile's aggregate by what precedes the tile.
  __device__ void hand_out() {
    await_tile(0);
    if (!ptx::ld_relaxed_cta(&shared.is_first)) return;
    const int lane = threadIdx.x % warp_threads;
    const int64 tiles_per_line = params.tiles_per_line.value;
    // With a value even without init: it is handed out as the first tile's prefix, which nobody
    // reads.
    Running<Op, A> start{A{}};
    if (has_init(params.common)) start.append(read_init(params.common));
    Running<Op, A> carry{A{}};
    assign(carry, start);
    int64 part = 0;
    constexpr int batch = 8;  // read before any is written: the chain is what all tiles wait for
    StateWindow<A, detail::scan_window> window;
    window.start(states, 0, params.num_tiles);
    for (int64 begin = 0; begin < params.num_tiles;) {
      const int count = window.finish(states, begin, params.num_tiles, shared.aggregates);
      // The next look is on its way while this one's tiles are served.
      if (begin + count < params.num_tiles) window.start(states, begin + count, params.num_tiles);
      if (count == 0) continue;
      int i = 0;
      auto step = [&](const A& own) {
        // All lanes have the same; of a record that is no one store.
        if (!is_record<A> || lane == 0) assign(shared.prefixes[i], carry.total);
        ++i;
        carry.append(own);
      };
      while (i < count) {  // one line after the other
        const int64 rest = tiles_per_line - part;
        const int stop = rest < count - i ? i + int(rest) : count;
        part += stop - i;
        if (carry.is_empty) step(shared.aggregates[i]);
#pragma unroll 1
        while (i + batch <= stop) {
          A next[batch];
#pragma unroll
          for (int k = 0; k < batch; ++k) next[k] = shared.aggregates[i + k];
          carry.is_empty = false;
#pragma unroll
          for (int k = 0; k < batch; ++k) step(next[k]);
        }
#pragma unroll 1
        while (i < stop) step(shared.aggregates[i]);
        if (part == tiles_per_line) {
          part = 0;
          assign(carry, start);
        }
      }
      ptx::syncwarp();
#pragma unroll 1
      for (int i = lane; i < count; i += warp_threads) {
        states.publish(begin + i, shared.prefixes[i], prefix);
      }
      ptx::syncwarp();
      begin += count;
    }
  }
};

template <class Policy, bool is_exclusive, class Op, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads + 2 * warp_threads, Policy::min_blocks)
    scan_tiles_kernel(const __grid_constant__ ParamsFor<Op, ScanTilesParams<A, T, Access>> params) {
  take_numbers<Op>(params);
  using Work = ScanTiles<Policy, is_exclusive, Op, A, T, Access>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work work{params, shared, TileStates(params.common.states)};
  if (Policy::transfer == Transfer::bulk && threadIdx.x < Work::stages * Work::warps) {
    shared.arrivals[threadIdx.x / Work::warps][threadIdx.x % Work::warps].init();
    CopyBarrier::fence_init();
  }
  if (threadIdx.x == 0) {
    ptx::st_relaxed_cta(&shared.num_handed, 0);
    ptx::st_relaxed_cta(&shared.num_known, ptx::ld_relaxed_cta(&shared.num_handed));
    ptx::st_relaxed_cta(&shared.num_all, 1 << 30);
    ptx::st_relaxed_cta(&shared.is_first, false);
  }
  ptx::syncthreads();
  if (threadIdx.x < Policy::block_threads) {
    work.scan_warps();
  } else if (!work.is_chained()) {
    return;
  } else if (threadIdx.x < Policy::block_threads + warp_threads) {
    work.find_prefixes();
  } else {
    work.hand_out();
  }
}

}  // namespace gpualgo

#endif
