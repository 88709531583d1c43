// Where a block keeps its counts, and where blocks join them.
//
// A slot is a counter's number in the block: channel * num_bins + bin. Every table has
//   base(first)             what `add` needs to know of a channel whose first slot is `first`
//   add(base, bin, count)   counts
//   total(slot)             after a barrier: what is to be added to the joint counters
//   end_tile()              all threads call it, after at most `max_tile` samples of a channel
//   suffers_from_skew       whether lanes that add to one counter wait for each other; then
//   add_once(…)             is `add` with one addition for all of them
#ifndef GPUALGO_HISTOGRAM_TABLES_CUH
#define GPUALGO_HISTOGRAM_TABLES_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// Counters of 4 or 8 bytes in global memory, shared by all blocks.
struct JointCounters {
  unsigned char* address;
  int64 bytes;  // of a counter

  __device__ void add(int64 index, uint32 count) const {
    if (bytes == 8) {
      ptx::atom_add_relaxed_gpu(reinterpret_cast<uint64*>(address) + index, uint64(count));
    } else {
      ptx::atom_add_relaxed_gpu(reinterpret_cast<uint32*>(address) + index, count);
    }
  }

  // Reads a counter that no block adds to any more, and sets it to zero for the next launch.
  __device__ uint64 take(int64 index) const {
    if (bytes == 8) {
      uint64* counter = reinterpret_cast<uint64*>(address) + index;
      const uint64 count = ptx::ld_cg(counter);
      *counter = 0;
      return count;
    }
    uint32* counter = reinterpret_cast<uint32*>(address) + index;
    const uint32 count = ptx::ld_cg(counter);
    *counter = 0;
    return count;
  }
};

struct TableSize {
  int64 num_slots;
  int64 replicas;
  int64 words;  // of shared memory, a multiple of 4
};

__device__ inline void clear_words(uint32* words, uint32 count) {
  for (uint32 i = threadIdx.x; i < count / 4; i += blockDim.x) {
    reinterpret_cast<uint4*>(words)[i] = make_uint4(0, 0, 0, 0);
  }
}

// The first of the warp's present lanes with one slot gets its number of lanes, the others 0.
__device__ inline uint32 lanes_alike(uint32 slot) {
  const uint32 peers = ptx::match_any_sync(ptx::activemask(), slot);
  const bool is_first = ptx::ffs(peers) - 1 == int(threadIdx.x % warp_threads);
  return is_first ? uint32(ptx::popc(peers)) : 0;
}

// Whether many neighbouring lanes are alike: cheaper to find out than which ones are.
__device__ inline bool is_skewed(uint32 bin) {
  const uint32 present = ptx::activemask();
  const uint32 neighbour = ptx::shfl_xor_sync(present, bin, 1);
  return ptx::popc(ptx::ballot_sync(present, bin == neighbour)) >= 8;
}

// 32-bit counters in shared memory, each `replicas` times side by side, a power of two: lane i
// adds to replica i % replicas. With 32 of them no two lanes meet in a bank, whatever the samples.
struct ReplicatedTable {
  using Base = uint32;
  static constexpr bool suffers_from_skew = false;
  static constexpr int max_tile = 0;  // any

  unsigned char* counters;
  uint32 replicas, mine;

  __device__ ReplicatedTable(uint32* words, const TableSize& size, const JointCounters&, int64)
      : counters(reinterpret_cast<unsigned char*>(words)),
        replicas(uint32(size.replicas)),
        mine(threadIdx.x % uint32(size.replicas)) {
    clear_words(words, uint32(size.words));
  }

  __device__ Base base(uint32 first) const { return (first * replicas + mine) * 4; }

  __device__ void add(Base base, uint32 bin, uint32 count) {
    ptx::atom_add_relaxed_cta(reinterpret_cast<uint32*>(counters + (base + bin * replicas * 4)),
                              count);
  }

  __device__ uint32 total(uint32 slot) const {
    const uint32* row = reinterpret_cast<const uint32*>(counters) + slot * replicas;
    // Neighbouring threads start at different replicas, in different banks.
    const uint32 turn = threadIdx.x % warp_threads * replicas / warp_threads;
    uint32 sum = 0;
    for (uint32 i = 0; i < replicas; ++i) sum += row[(i + turn) & (replicas - 1)];
    return sum;
  }

  // Puts a slot's total where `kept_total` finds it after a barrier.
  __device__ void keep_total(uint32 slot) {
    reinterpret_cast<uint32*>(counters)[slot * replicas] = total(slot);
  }
  __device__ uint32 kept_total(uint32 slot) const {
    return reinterpret_cast<const uint32*>(counters)[slot * replicas];
  }

  __device__ void end_tile() const {}
};

// The same with a number of replicas that is known in advance, cleared by the kernel.
template <int replicas>
struct FixedTable {
  using Base = uint32;
  static constexpr bool suffers_from_skew = false;
  static constexpr int max_tile = 0;  // any

  unsigned char* counters;

  __device__ explicit FixedTable(uint32* words)
      : counters(reinterpret_cast<unsigned char*>(words)) {}

  __device__ Base base(uint32 first) const {
    return (first * replicas + threadIdx.x % replicas) * 4;
  }

  __device__ void add(Base base, uint32 bin, uint32 count) {
    ptx::atom_add_relaxed_cta(reinterpret_cast<uint32*>(counters + (base + bin * (replicas * 4))),
                              count);
  }

  __device__ uint32 total(uint32 slot) const {
    constexpr int width = replicas < 4 ? replicas : 4, packs = replicas / width;
    const unsigned char* row = counters + slot * (replicas * 4);
    uint32 sum = 0;
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      // Neighbouring threads start at different packs, in different banks.
      const uint32 pack = (i + threadIdx.x * packs / 8) % packs;
      const auto held = load_pack<uint32, width>(row + pack * (width * 4));
#pragma unroll
      for (int k = 0; k < width; ++k) sum += held.items[k];
    }
    return sum;
  }
};

// 16-bit counters in shared memory, two to a word. The thread whose addition takes a counter to
// 0x8000 or beyond moves 0x8000 of it to the joint counters. A counter is below 0x8000 whenever
// the block has passed a barrier; within max_tile samples it stays below 0x10000.
struct PackedTable {
  using Base = uint32;
  static constexpr bool suffers_from_skew = true;
  static constexpr int max_tile = 0x8000;

  uint32* words;
  JointCounters joint;
  int64 first_index;

  __device__ PackedTable(uint32* words_, const TableSize& size, const JointCounters& joint_,
                         int64 first_index_)
      : words(words_), joint(joint_), first_index(first_index_) {
    clear_words(words, uint32(size.words));
  }

  __device__ Base base(uint32 first) const { return first; }

  __device__ void add(Base base, uint32 bin, uint32 count) {
    const uint32 slot = base + bin;
    uint32* word = words + slot / 2;
    const uint32 addend = ptx::funnelshift_l(0, count, slot * 16);  // slot % 2 * 16: it wraps
    const uint32 before = ptx::atom_add_relaxed_cta(word, addend);
    if (~before & (before + addend) & 0x80008000u) {
      ptx::atom_add_relaxed_cta(word, 0u - ptx::funnelshift_l(0, 0x8000u, slot * 16));
      joint.add(first_index + slot, 0x8000u);
    }
  }

  __device__ void add_once(Base base, uint32 bin, uint32 count) {
    const uint32 lanes = lanes_alike(base + bin);
    if (lanes > 0) add(base, bin, count * lanes);
  }

  __device__ uint32 total(uint32 slot) const {
    return words[slot / 2] >> (slot % 2 * 16) & 0xffffu;
  }

  __device__ void end_tile() const { ptx::syncthreads(); }
};

// No counters in the block: for more bins than shared memory holds, or few samples.
struct GlobalTable {
  using Base = uint32;
  static constexpr bool suffers_from_skew = true;
  static constexpr int max_tile = 0;

  JointCounters joint;
  int64 first_index;

  __device__ GlobalTable(uint32*, const TableSize&, const JointCounters& joint_, int64 first_index_)
      : joint(joint_), first_index(first_index_) {}

  __device__ Base base(uint32 first) const { return first; }

  __device__ void add(Base base, uint32 bin, uint32 count) {
    joint.add(first_index + (base + bin), count);
  }

  __device__ void add_once(Base base, uint32 bin, uint32 count) {
    const uint32 lanes = lanes_alike(base + bin);
    if (lanes > 0) add(base, bin, count * lanes);
  }

  __device__ uint32 total(uint32) const { return 0; }
  __device__ void end_tile() const {}
};

}  // namespace gpualgo

#endif
