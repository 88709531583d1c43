// Decoupled look-back: what blocks tell each other about the tiles before theirs, within one
// launch (Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA
// NVR-2016-002, 2016).
//
// A tile's state is a value under a tag of epoch and status (parts/tagged.cuh). The epoch grows
// with each launch: states are never cleared. All that ever lies in this memory is such words.
#ifndef GPUALGO_PARTS_LOOKBACK_CUH
#define GPUALGO_PARTS_LOOKBACK_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tagged.cuh"

namespace gpualgo {

enum Status : uint32 {
  nothing = 0,
  aggregate = 1,  // the tile's own value
  prefix = 2      // that of all tiles up to this one
};

constexpr uint32 last_epoch = (1u << 30) - (1u << 24);  // a launch may use many: a tag has 30 bits

// At the head of the states; all zero at first.
struct alignas(256) LookbackControl {
  uint32 next_tile;  // 0 between launches
  uint32 num_done;   // 0 between launches
  uint32 epoch;
};

// The states behind their control block, as one launch sees them.
struct TileStates {
  LookbackControl* control;  // null: no tile waits for another
  uint32 epoch;

  __device__ explicit TileStates(unsigned char* memory)
      : control(reinterpret_cast<LookbackControl*>(memory)),
        epoch(control == nullptr ? 0 : control->epoch) {}

  __device__ uint64* words() const { return reinterpret_cast<uint64*>(control + 1); }

  // Takes the next tile. Called by one thread. Tiles go to running blocks only, in order: a block
  // that waits for an earlier tile waits for a block that runs.
  __device__ uint32 take() const { return ptx::atom_add_relaxed_gpu(&control->next_tile, 1u); }

  __device__ uint32 tag(Status status) const { return epoch << 2 | status; }

  template <class T>
  __device__ void publish(int64 index, const T& value, Status status) const {
    store_tagged(words(), index, value, tag(status));
  }
  template <class T>
  __device__ Tagged<T> load(int64 index) const {
    return load_tagged<T>(words(), index);
  }
  // Takes a value out of its state, whole or not at all: `nothing` if it is not there yet.
  template <class T>
  __device__ Status read(const Tagged<T>& state, T& value) const {
    const uint32 found = untag(state, value);
    return found >> 2 == epoch ? Status(found & 3) : nothing;
  }

  // Called by one thread of each block when the block takes no more tiles and reads no more
  // states. The last one prepares the next launch, and gets true. `num_words` are all that the
  // memory holds; `num_epochs` are those that the launch has used.
  __device__ bool finish(int64 num_words, uint32 num_epochs = 1) const {
    if (ptx::atom_add_acq_rel_gpu<1>(&control->num_done) != gridDim.x - 1) return false;
    const uint32 next = epoch + num_epochs;
    control->next_tile = 0;
    control->num_done = 0;
    control->epoch = next > last_epoch ? 0 : next;
    if (next > last_epoch) {  // tags begin anew: once in a thousand million launches
      for (int64 i = 0; i < num_words; ++i) words()[i] = 0;
    }
    return true;
  }

  // The same, where each block has one tile, published it, has number `part` of its line and has
  // waited for those before it there. All threads call it. Blocks need not be counted: who has
  // published a tile has read the epoch.
  template <class T, int block_threads>
  __device__ void finish_in_order(int64 num_tiles, int part, int64 num_words) const {
    if (epoch >= last_epoch) {  // all must have ended before words are cleared
      if (threadIdx.x == 0) finish(num_words);
      return;
    }
    if (blockIdx.x != num_tiles - 1) return;
    T value;
    for (int64 i = threadIdx.x; i < num_tiles - 1 - part; i += block_threads) {
      while (read(load<T>(i), value) == nothing) {
      }
    }
    ptx::syncthreads();
    if (threadIdx.x == 0) control->epoch = epoch + 1;
  }
};

// A warp's look at the states [begin, end), of which it takes 32 * window at most.
template <class A, int window>
struct StateWindow {
  Tagged<A> loaded[window];

  __device__ void start(const TileStates& states, int64 begin, int64 end) {
#pragma unroll
    for (int k = 0; k < window; ++k) {
      const int64 at = begin + k * warp_threads + threadIdx.x % warp_threads;
      loaded[k] = states.load<A>(at < end ? at : end - 1);
    }
  }
  // Puts their values into shared memory; returns how many of the first are there.
  __device__ int finish(const TileStates& states, int64 begin, int64 end, A* values) const {
    const int lane = threadIdx.x % warp_threads;
    int count = 0;
#pragma unroll
    for (int k = 0; k < window; ++k) {
      A value;
      const Status status = states.read(loaded[k], value);
      values[k * warp_threads + lane] = value;
      const bool is_there = status != nothing && begin + k * warp_threads + lane < end;
      const uint32 missing = ~ptx::ballot_sync(all_lanes, is_there);
      const int found = missing == 0 ? warp_threads : ptx::ffs(missing) - 1;
      if (count == k * warp_threads) count += found;
    }
    ptx::syncwarp();
    return count;
  }
};

}  // namespace gpualgo

#endif
