// How the tiles of a radix sort's pass learn what precedes them, digit by digit.
//
// In rows of few tiles each tile looks back itself (lookback.cuh). Otherwise one block does nothing
// but read the tiles' counts in order and hand out prefixes: its reads are the only ones of the
// counts, and each tile reads one state, its own.
#ifndef GPUALGO_TILE_RING_CUH
#define GPUALGO_TILE_RING_CUH

#include "layout.cuh"
#include "lookback.cuh"
#include "radix_histogram.cuh"
#include "warp.cuh"

namespace gpualgo {

// The states of tiles as a ring. Tile t writes where tile t - ring wrote, once no tile reads that
// any more: it waits until the tiles up to half a ring before it are done, and no tile looks
// further back than half a ring. Eight counters, one for each eighth of the ring, say how many of
// its tiles are done; a pass that fits the ring needs none.
struct TileRing {
  static constexpr int groups = 8;
  TileStates states;
  RadixControl* control;
  uint32 size;
  uint32 shift;  // size == 1 << shift

  __device__ TileRing(unsigned char* memory, RadixControl* control, uint32 size)
      : states(memory), control(control), size(size), shift(31 - __clz(size)) {}

  __device__ TileStates lap_of(uint32 tile) const {
    TileStates lap = states;
    lap.epoch += tile >> shift;
    return lap;
  }
  __device__ uint32 index(uint32 tile, int digit) const {
    return (tile & (size - 1)) * num_digits + digit;
  }
  template <class Index>
  __device__ void publish(uint32 tile, int digit, Index count, Status status) const {
    lap_of(tile).publish(index(tile, digit), count, status);
  }

  // Waits until a tile may publish; called by a whole warp.
  __device__ void wait_for_room(uint32 tile) const {
    if (tile < size) return;
    const uint32 group_shift = shift - 3;
    const int last = int(tile >> group_shift) - groups / 2;  // of the groups that must be done
    const int group = last - int(threadIdx.x % groups);
    const uint64 wanted = group < 0 ? 0 : uint64(group / groups + 1) << group_shift;
    const uint64* done = &control->groups_done[uint32(group) % groups];
    while (__any_sync(all_lanes, load_relaxed(done) < wanted)) {
    }
  }
  // Says that a tile reads no more states. Its reads have returned, so nothing needs ordering.
  __device__ void done(uint32 tile) const {
    fetch_add(&control->groups_done[(tile >> (shift - 3)) % groups], uint64(1));
  }

  // What a digit's thread knows of the tiles before its own.
  template <class Index>
  struct Found {
    Index sum = 0;
    uint32 back = 1;  // how far back the nearest tile lies that is not counted yet
    bool is_done = false;
  };

  // Counts tiles from the nearest on, as far as their states are there.
  template <int window, class Index>
  __device__ void take_in(const TileStates& lap, uint32 newest, Found<Index>& found) const {
    State<Index> states[window];
#pragma unroll
    for (int k = 0; k < window; ++k) {
      states[k] = lap.template load<Index>(int64(newest) - k * num_digits);
    }
    bool is_open = !found.is_done;
#pragma unroll
    for (int k = 0; k < window; ++k) {
      Index count;
      const Status status = lap.read(states[k], count);
      if (is_open && status != nothing) {
        found.sum += count;
        ++found.back;
      }
      found.is_done = found.is_done || (is_open && status == prefix);
      is_open = is_open && status == aggregate;
    }
  }

  // Waits for a tile's prefix where one block hands them out. A whole warp goes together.
  template <class Index>
  __device__ Index await_prefix(uint32 tile, int digit) const {
    Index before = 0;
    bool is_done = false;
    while (__any_sync(all_lanes, !is_done)) {
      const TileStates lap = lap_of(tile);
      is_done = lap.read(lap.template load<Index>(index(tile, digit)), before) == prefix;
    }
    return before;
  }

  // The number of keys with a digit in the `part` tiles of its row that precede a tile. A whole
  // warp goes together, lest the compiler think it diverged for good.
  template <int window, class Index>
  __device__ Index look_back(uint32 tile, uint32 part, int digit) const {
    Found<Index> found;
    while (__any_sync(all_lanes, !found.is_done)) {
      const uint32 at = tile - found.back;
      const uint32 slot = at & (size - 1);
      // Within the row, the lap, and the half of the ring before the tile.
      const bool has_window =
          part >= found.back + window - 1 && slot >= window - 1 && size / 2 >= found.back + window;
      // Lanes that are done look at anything, so as not to hold up the others.
      const uint32 newest = found.is_done ? index(window, digit) : index(at, digit);
      if (__all_sync(all_lanes, found.is_done || has_window)) {
        take_in<window>(lap_of(at), newest, found);
      } else {
        take_in<1>(lap_of(at), newest, found);
      }
      if (!found.is_done && found.back >= size / 2) {
        found = Found<Index>{};  // nearer tiles will have their prefixes by now
      }
    }
    return found.sum;
  }
};

// The rows that tiles belong to, as they lie in the tables.
template <class Index>
struct TileRows {
  int64 num_tiles;
  Divisor tiles_per_row;
  const Index* starts;  // of the pass, in the first row
  int64 row_step;       // to those of the next row

  __device__ bool is_first(uint32 tile) const {
    return tile == uint32(tiles_per_row.divide(tile)) * uint32(tiles_per_row.value);
  }
  __device__ bool is_last(uint32 tile) const { return is_first(tile + 1); }
  // Where a digit's keys begin in the row of a tile.
  __device__ Index start(uint32 tile, int digit) const {
    return starts[tiles_per_row.divide(tile) * row_step + digit];
  }
};

// The block that hands out prefixes. Groups of 256 threads, one per digit, take turns at runs of
// `window` tiles: while one adds up, the others wait for their tiles' counts.
template <int threads, int window, class Index>
struct PrefixHander {
  static constexpr int groups = threads / num_digits;
  static_assert(groups >= 1);
  struct Shared {
    Index sums[num_digits];                   // of the tiles so far
    uint32 turns[num_digits / warp_threads];  // whose turn it is, for each warp of a group
  };

  const TileRing& ring;
  const TileRows<Index>& rows;
  Shared& shared;
  int digit = threadIdx.x % num_digits;

  // Reads the states that were not there yet; returns which now are.
  __device__ uint32 read(uint32 first, int count, uint32 ready, Index (&counts)[window]) const {
    State<Index> states[window];
#pragma unroll
    for (int k = 0; k < window; ++k) {
      if (k < count && !(ready >> k & 1)) {
        states[k] = ring.lap_of(first + k).template load<Index>(ring.index(first + k, digit));
      }
    }
#pragma unroll
    for (int k = 0; k < window; ++k) {
      if (k < count && !(ready >> k & 1)) {
        Index found;
        if (ring.lap_of(first + k).read(states[k], found) == aggregate) {
          counts[k] = found;
          ready |= 1u << k;
        } else if (rows.is_last(first + k)) {
          ready |= 1u << k;  // it has no followers, and publishes nothing
        }
      }
    }
    return ready;
  }

  __device__ void run_of(uint32 first, int count, volatile uint32& turn, uint32 run) {
    Index counts[window];
    uint32 ready = 0;
    int handed = 0;
    bool has_turn = false;
    Index sum = 0;
    while (__any_sync(all_lanes, handed < count)) {
      ready = read(first, count, ready, counts);
      if (!has_turn && turn == run) {
        __threadfence_block();
        has_turn = true;
        sum = shared.sums[digit];
      }
#pragma unroll
      for (int k = 0; k < window; ++k) {
        if (has_turn && k == handed && k < count && ready >> k & 1) {
          const uint32 tile = first + k;
          if (rows.is_first(tile)) {
            sum = rows.start(tile, digit);
          } else {
            ring.publish(tile, digit, sum, prefix);
          }
          sum += counts[k];
          ++handed;
        }
      }
    }
    shared.sums[digit] = sum;
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x % warp_threads == 0) turn = run + 1;
  }

  // Called by all threads of the block.
  __device__ void run() {
    if (threadIdx.x < num_digits / warp_threads) shared.turns[threadIdx.x] = 0;
    __syncthreads();
    const int group = threadIdx.x / num_digits;
    if (group >= groups) return;
    volatile uint32& turn = shared.turns[digit / warp_threads];
    for (uint32 run = group; int64(run) * window < rows.num_tiles; run += groups) {
      const int64 rest = rows.num_tiles - int64(run) * window;
      run_of(run * window, rest < window ? int(rest) : window, turn, run);
    }
  }
};

}  // namespace gpualgo

#endif
