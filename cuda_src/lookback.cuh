// Decoupled look-back: what blocks tell each other about the tiles before theirs, within one
// launch (Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA
// NVR-2016-002, 2016).
//
// A tile's state is a value of any size, cut into 32-bit words; each lies in a 64-bit word beside
// a tag of epoch and status, so that a reader knows of every word whose it is, whatever the order
// in which they arrive, and no fence is needed. The epoch grows with each launch: states are
// never cleared. All that ever lies in this memory is such words.
#ifndef GPUALGO_LOOKBACK_CUH
#define GPUALGO_LOOKBACK_CUH

#include "memory_order.cuh"
#include "warp.cuh"

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

template <class T>
inline constexpr int state_words = (sizeof(T) + 3) / 4;

template <class T>
struct State {
  uint64 words[state_words<T>];
};

// The states behind their control block, as one launch sees them.
struct TileStates {
  LookbackControl* control;
  uint64* words;
  uint32 epoch;

  __device__ explicit TileStates(unsigned char* memory)
      : control(reinterpret_cast<LookbackControl*>(memory)),
        words(reinterpret_cast<uint64*>(memory + sizeof(LookbackControl))),
        epoch(memory == nullptr ? 0 : control->epoch) {}  // none: no tile waits for another

  // Takes the next tile. Called by one thread. Tiles go to running blocks only, in order: a block
  // that waits for an earlier tile waits for a block that runs.
  __device__ uint32 take() const { return atomicAdd(&control->next_tile, 1u); }

  template <class T>
  __device__ void publish(int64 index, const T& value, Status status) const {
    uint32 pieces[state_words<T>] = {};
    memcpy(pieces, &value, sizeof(T));
    const uint64 tag = uint64(epoch << 2 | status) << 32;
#pragma unroll
    for (int i = 0; i < state_words<T>; ++i) {
      store_relaxed(words + index * state_words<T> + i, tag | pieces[i]);
    }
  }

  // Loads a state. Loads of several should all be under way before the first is looked at.
  template <class T>
  __device__ State<T> load(int64 index) const {
    State<T> state;
#pragma unroll
    for (int i = 0; i < state_words<T>; ++i) {
      state.words[i] = load_relaxed(words + index * state_words<T> + i);
    }
    return state;
  }

  // Takes a value out of its state, whole or not at all: `nothing` if it is not there yet.
  template <class T>
  __device__ Status read(const State<T>& state, T& value) const {
    uint32 pieces[state_words<T>];
    const uint32 first = uint32(state.words[0] >> 32);
    bool is_whole = first >> 2 == epoch;
#pragma unroll
    for (int i = 0; i < state_words<T>; ++i) {
      pieces[i] = uint32(state.words[i]);
      is_whole = is_whole && uint32(state.words[i] >> 32) == first;
    }
    memcpy(&value, pieces, sizeof(T));
    return is_whole ? Status(first & 3) : nothing;
  }

  // Called by one thread of each block when the block takes no more tiles and reads no more
  // states. The last one prepares the next launch, and gets true. `num_words` are all that the
  // memory holds; `num_epochs` are those that the launch has used.
  __device__ bool finish(int64 num_words, uint32 num_epochs = 1) const {
    if (arrive(&control->num_done) != gridDim.x - 1) return false;
    const uint32 next = epoch + num_epochs;
    control->next_tile = 0;
    control->num_done = 0;
    control->epoch = next > last_epoch ? 0 : next;
    if (next > last_epoch) {  // tags begin anew: once in a thousand million launches
      for (int64 i = 0; i < num_words; ++i) words[i] = 0;
    }
    return true;
  }
};

// A warp's look at the states [begin, end), of which it takes 32 * window at most.
template <class A, int window>
struct StateWindow {
  State<A> loaded[window];

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
      const uint32 missing = ~__ballot_sync(all_lanes, is_there);
      const int found = missing == 0 ? warp_threads : __ffs(int(missing)) - 1;
      if (count == k * warp_threads) count += found;
    }
    __syncwarp();
    return count;
  }
};

}  // namespace gpualgo

#endif
