// The states of a radix pass's tiles, in bounded memory.
#ifndef GPUALGO_RADIX_SORT_RING_CUH
#define GPUALGO_RADIX_SORT_RING_CUH

#include "parts/intrinsics.cuh"
#include "parts/lookback.cuh"
#include "parts/ptx.cuh"
#include "radix_sort/histogram.cuh"

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
      : states(memory), control(control), size(size), shift(31 - ptx::clz(size)) {}

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
    while (ptx::any_sync(all_lanes, ptx::ld_relaxed_gpu(done) < wanted)) {
    }
  }
  // Says that a tile reads no more states. Its reads have returned, so nothing needs ordering.
  __device__ void done(uint32 tile) const {
    ptx::atom_add_relaxed_gpu(&control->groups_done[(tile >> (shift - 3)) % groups], uint64(1));
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
    Tagged<Index> states[window];
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

  // The number of keys with a digit in the `part` tiles of its row that precede a tile. A whole
  // warp goes together, lest the compiler think it diverged for good.
  template <int window, class Index>
  __device__ Index look_back(uint32 tile, uint32 part, int digit) const {
    Found<Index> found;
    while (ptx::any_sync(all_lanes, !found.is_done)) {
      const uint32 at = tile - found.back;
      const uint32 slot = at & (size - 1);
      // Within the row, the lap, and the half of the ring before the tile.
      const bool has_window =
          part >= found.back + window - 1 && slot >= window - 1 && size / 2 >= found.back + window;
      // Lanes that are done look at anything, so as not to hold up the others.
      const uint32 newest = found.is_done ? index(window, digit) : index(at, digit);
      if (ptx::all_sync(all_lanes, found.is_done || has_window)) {
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

}  // namespace gpualgo

#endif
