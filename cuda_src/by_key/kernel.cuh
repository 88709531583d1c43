// Reductions and scans by key: runs of equal keys, or of elements between marks (by_key/marks.cuh),
// each reduced or scanned apart.
//
// Algorithm  One pass (Merrill and Garland, "Single-pass parallel prefix scan with decoupled
//            look-back", NVIDIA NVR-2016-002, 2016; Sengupta et al., "Scan primitives for GPU
//            computing", 2007, doi:10.2312/EGGH/EGGH07/097-106). Blocks take tiles in order. A tile
//            is loaded into registers, the heads of its runs are marked, and its runs are folded by
//            lanes, warps and the block, as pairs of a flag and a value. The tile's own result is
//            published: the run that it leaves open, and how many begin. Results are put into
//            shared memory. While the tile after the next one is loaded, the block looks back for
//            the tile and writes it: to what precedes its first head, the run that was open before
//            it is joined. A look-back goes no further than to the nearest tile in which a run
//            begins. Tiles in which none does are joined in groups of 32, told as soon as the last
//            tile is published, so that a run of any length takes hardly more time.
// Bytes      Of each element its key and its value; of each run a key and an aggregate, or of each
//            element a result. Launches: one. Temporary storage: 8 bytes per tile and per 32 tiles
//            for each 32 bits of A, of a reduction 8 more per tile (16 from 2^32 elements on), and
//            256.
// Operator   Associative. Elements are combined in order; it is never called on anything but
//            elements, init and its own results. Equality is asked of neighbours.
// Bits       What tiles leave open is scanned by a warp in each aligned group of 32 tiles, and
//            folded strictly from left to right from group to group; a tile depends on types
//            alone: so does the association, on where runs begin, and on nothing else.
#ifndef GPUALGO_BY_KEY_KERNEL_CUH
#define GPUALGO_BY_KEY_KERNEL_CUH

#include "by_key/results.cuh"
#include "by_key/tile.cuh"
#include "parts/intrinsics.cuh"
#include "parts/keyed.cuh"
#include "parts/lookback.cuh"
#include "parts/operator.cuh"
#include "parts/prefix_sum.cuh"
#include "parts/ptx.cuh"
#include "select/tile.cuh"

namespace gpualgo {

template <class Policy, Way way, class Equal, class Op, class K, class A, class T, class Count,
          class Params, bool has_init>
struct ByKey {
  static constexpr bool reduces = way == Way::reduce;
  // Of a reduction init comes in at the end.
  using Tiles = ByKeyTiles<Policy, Equal, Op, K, A, T, Params, has_init && !reduces>;
  using Results = ByKeyResults<Tiles, way, Op, K, A, Params, has_init>;
  using Tile = typename Tiles::Tile;
  using Staged = typename Results::Staged;
  static constexpr int warps = Tiles::warps, tile_items = Tiles::tile_items;
  static constexpr int carrying = reduces ? 1 : 0;  // the warp that asks for open runs
  static_assert(warps > carrying && warps <= warp_threads);

  struct Shared {
    alignas(vector_bytes) unsigned char stages[2][Results::stage_bytes];
    A carry;            // the run that is open before the tile that is written next
    A tails[2];         // at the ends of staged tiles, by themselves until their carry is known
    A totals[warps];    // what each warp leaves open of the tile at hand
    Count before;       // runs before the tile that is written next
    uint32 next;        // the tile that is taken
    int firsts[warps];  // where the first run of each begins
    int counts[warps];  // runs that begin
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  TileStates states;
  Carries<Op, A> carries;
  Tiles tiles{params};
  Results results{params};
  int warp = tiles.warp, lane = tiles.lane;

  // Folds the tile's runs by warps, and tells the block.
  template <bool is_full>
  __device__ void summarise(Tile& held, int64 tile) const {
    if constexpr (Tiles::is_marked) {
      tiles.template mark_segments<is_full>(held, tile);
    } else {
      tiles.template mark<is_full>(held, tile);
    }
    if (reduces || Tiles::has_starts) tiles.rank(held);
    if constexpr (Tiles::has_starts) tiles.put_starts(held, tile);
    tiles.template fold<is_full>(held, is_full ? tile_items : tiles.count_of(tile));
    if (lane != 0) return;
    shared.firsts[warp] = held.first;
    if (reduces) shared.counts[warp] = Tiles::total_of(held);
    if (is_full || !held.whole.is_empty) assign(shared.totals[warp], held.whole.value);
  }

  // Puts warps together, and tells other blocks; returns what the tile is as a whole. `within`: the
  // run that is open before the warp's elements, by the tile itself; `begin`: runs before them.
  __device__ Staged put_together(int64 tile, A& within, int& begin, int parity) {
    Staged staged;
    staged.tile = tile;
    staged.count = tiles.count_of(tile);
    const int active = (staged.count + Tiles::warp_items - 1) / Tiles::warp_items;
    A total{};
    int first = tile_items, count = 0;
    if (lane < active) {
      first = shared.firsts[lane];
      if (reduces) count = shared.counts[lane];
      assign(total, shared.totals[lane]);
    }
    const uint32 heads = ptx::ballot_sync(all_lanes, first < tile_items);
    if (heads != 0) staged.first = shuffle(first, ptx::ffs(heads) - 1);
    const A whole = scan_runs<Op>(total, heads, active);
    assign(within, shuffle(whole, warp > 0 ? warp - 1 : 0));
    if (reduces) {
      const int sum = sum_up_to<warps>(count);
      begin = shuffle(sum - count, warp);
      staged.num_runs = shuffle(sum, warps - 1);
    }
    if (warp != carrying || lane != active - 1) return staged;
    assign(shared.tails[parity], whole);
    carries.publish(tile, whole, heads != 0);
    if constexpr (reduces) {
      states.publish(tile, Count(staged.num_runs), tile == 0 ? prefix : aggregate);
    }
    return staged;
  }

  // Finds how many runs precede a staged tile, and tells the tiles behind it. Called by one warp.
  __device__ void count_back(const Staged& staged) {
    const Count before = sum_before<Count>(states, staged.tile);
    if (lane != 0) return;
    if (staged.tile > 0) states.publish(staged.tile, Count(before + staged.num_runs), prefix);
    shared.before = before;
  }
  // Finds which run is open before it, and joins what follows in it. Called by one warp.
  __device__ void carry_back(const Staged& staged, int parity) {
    if (staged.tile == 0 || (!reduces && staged.first == 0)) return;
    const bool begins = staged.first < tile_items;
    A& tail = shared.tails[parity];
    const A carry = carries.before(staged.tile, tail, begins);
    if (lane != 0) return;
    assign(shared.carry, carry);
    if (!begins) assign(tail, Op::apply(carry, tail));
  }

  template <bool is_full>
  __device__ void stage(Tile& held, const Staged& staged, const A& within, int begin,
                        unsigned char* to) const {
    const int count = is_full ? tile_items : staged.count;
    tiles.join(held, within, count);
    if constexpr (reduces) {
      results.template stage_runs<is_full>(to, held, begin, count);
    } else {
      results.template stage_results<is_full>(to, held, count);
      if constexpr (Tiles::has_starts && way == Way::exclusive) {
        tiles.at_starts(held, staged.tile, [&](int bit, const A& start) {
          results.put_value(to, tiles.place_of(bit), start);
        });
      }
    }
  }

  __device__ void write(const Staged& staged, int parity) const {
    unsigned char* from = shared.stages[parity];
    if constexpr (reduces) {
      results.write_runs(staged, from, int64(shared.before), shared.carry, shared.tails[parity]);
    } else {
      results.complete(staged, from, shared.carry);
      results.write_results(staged, from);
    }
  }

  // Sets marks, by the grid's first blocks. The others wait for them.
  __device__ void set_marks() const {
    mark_heads<typename Equal::Index, Policy::block_threads, 4>(params, params.num_markers);
    ptx::syncthreads();
    if (threadIdx.x == 0) ptx::atom_add_acq_rel_gpu<1>(params.num_marked);
  }
  __device__ void await_marks() const {
    if (threadIdx.x == 0) {
      while (ptx::ld_acquire_gpu(params.num_marked) != params.num_markers) ptx::nanosleep(32);
    }
    ptx::syncthreads();
  }

  __device__ void run() {
    if (threadIdx.x == 0) shared.next = states.take();
    ptx::syncthreads();
    Tile held;
    Staged last, ready;  // the tiles taken before, ready first
    for (int parity = 0;; parity ^= 1) {
      const int64 tile = shared.next;
      const bool is_tile = tile < params.num_tiles;
      const bool is_full = is_tile && tiles.count_of(tile) == tile_items;
      if (is_tile) tiles.load(held, tile);
      if constexpr (Tiles::sets_marks) {
        if (last.tile < 0 && is_tile) await_marks();  // elements are under way
        if (is_tile) tiles.take_marks(held, tile);
      }
      if (last.tile >= 0 && warp == carrying) {
        carries.tell_group(last.tile, shared.tails[parity ^ 1], last.first < tile_items);
      }
      if (ready.tile >= 0) {
        if (reduces && warp == 0) count_back(ready);
        if (warp == carrying) carry_back(ready, parity);
        ptx::syncthreads();
        write(ready, parity);
      }
      if (!is_tile && last.tile < 0) break;
      if (is_full) {
        summarise<true>(held, tile);
      } else if (is_tile) {
        summarise<false>(held, tile);
      }
      ptx::syncthreads();  // behind it, the stage is free again
      Staged staged;
      if (is_tile) {
        A within;
        int begin = 0;
        staged = put_together(tile, within, begin, parity);
        uint32 next = 0;
        if (threadIdx.x == 0) next = states.take();
        if (is_full) {
          stage<true>(held, staged, within, begin, shared.stages[parity]);
        } else {
          stage<false>(held, staged, within, begin, shared.stages[parity]);
        }
        if (threadIdx.x == 0) shared.next = next;  // not waited for before
      }
      ptx::syncthreads();
      ready = last;
      last = staged;
    }
  }
};

template <class Policy, Way way, class Equal, class Op, class K, class A, class T, class Count,
          class Params, bool has_init>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    by_key_kernel(const __grid_constant__ ParamsFor<Op, Params> params) {
  take_numbers<Op>(params);
  using Work = ByKey<Policy, way, Equal, Op, K, A, T, Count, Params, has_init>;
  if constexpr (!Work::Tiles::is_marked && Work::reduces) {
    if (params.window && params.window->is_narrow) return;
  }
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  const TileStates states(params.states);
  // Behind the counts of a reduction's tiles.
  const int64 counts = Work::reduces ? params.num_tiles * tagged_words<Count> : 0;
  Work work{params, shared, states, {states, states.words() + counts, params.num_tiles}};
  bool is_marker = false;
  if constexpr (Work::Tiles::sets_marks) {
    is_marker = blockIdx.x < params.num_markers;
    if (is_marker) work.set_marks();
  }
  if (!is_marker) work.run();
  if (threadIdx.x != 0 || !states.finish(params.num_words)) return;
  if constexpr (Work::Tiles::sets_marks) *params.num_marked = 0;
}

}  // namespace gpualgo

#endif
