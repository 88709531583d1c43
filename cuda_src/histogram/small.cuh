// Histogram of few samples: one row without gaps, counted in one wave of blocks.
//
// Algorithm  Latency is all: samples are asked for first; then the table is cleared and bins are
//            opened. A block adds each of its counts, zeros too, to a joint word that also counts
//            the blocks that have been there. The last block adds nothing: it waits for each word
//            until all others have been there, writes the result and empties the words. So no
//            block makes two trips to L2, and nothing orders memory but the words themselves.
//            The last block is the last to begin: all that it waits for run or have run.
// Bytes      sizeof(T) per sample. Launches: one. Temporary storage: 4 bytes for each slot, for
//            each copy of the joint words.
// Bits       Integer additions commute: the same counts on every run and every GPU.
#ifndef GPUALGO_HISTOGRAM_SMALL_CUH
#define GPUALGO_HISTOGRAM_SMALL_CUH

#include "histogram/count.cuh"
#include "histogram/result.cuh"
#include "parts/ptx.cuh"

namespace gpualgo {

// A joint word: so many bits of the count, above them how many blocks have been there.
constexpr int small_count_bits = 24;

template <int block_threads_, int loads_, int replicas_, int copies_, int cluster_>
struct SmallPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads = loads_;        // vectors that a thread has under way
  static constexpr int replicas = replicas_;  // of the block's table
  static constexpr int copies = copies_;      // of the joint words; blocks take them in turn
  static constexpr int cluster = cluster_;    // blocks that join in shared memory first
};

template <class Bins>
struct SmallHistogram {
  const unsigned char* input;
  unsigned char* output;
  uint32* words;  // joint ones; all zero before and after; null: one block, or one cluster
  int64 bin_stride;
  uint32 num_items, num_slots, num_bins, output_bytes;
  Bins bins;
};

struct SmallShared {
  alignas(16) uint32 words[4];  // the table's, sums, then what the bins put there; more than 4
};

// Adds the words of some slots, distance apart, to their counts, and empties them. `others`: how many
// blocks or clusters have been there or will be. All loads are under way before one is looked at.
template <int copies, int batch>
__device__ inline void take_words(uint32* words, uint32 num_slots, uint32 slot, uint32 distance,
                                  uint32 last, uint32 others, uint32 (&counts)[batch]) {
  uint32 found[batch][copies];
  bool is_whole;
  do {
    is_whole = true;
#pragma unroll
    for (int k = 0; k < batch; ++k) {
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        if (slot + k * distance < last) {
          found[k][i] = ptx::ld_relaxed_gpu(words + i * num_slots + slot + k * distance);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        if (slot + k * distance < last) {
          const uint32 expected = (others + copies - 1 - i) / copies;
          is_whole = is_whole && found[k][i] >> small_count_bits == expected;
        }
      }
    }
  } while (!is_whole);
#pragma unroll
  for (int k = 0; k < batch; ++k) {
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      if (slot + k * distance < last) {
        counts[k] += found[k][i] & ((1u << small_count_bits) - 1);
        ptx::st_relaxed_gpu(words + i * num_slots + slot + k * distance, 0u);
      }
    }
  }
}

// What a block does with the count of a slot: it is a bin's, a value's that is a bin, or a value's
// that has a share in one, added to `sums`.
template <class Bins>
__device__ inline void put_small(const SmallHistogram<Bins>& params, uint32 slot, uint32 count,
                                 uint32* sums) {
  uint32 bin = slot;
  if constexpr (Bins::counts_values) {
    bin = params.bins.bin_of(slot);
    if (bin >= params.num_bins) return;
  }
  if constexpr (Bins::shares_bins) {
    if (count != 0) ptx::atom_add_relaxed_cta(sums + bin, count);
  } else {
    store_count(params.output + bin * params.bin_stride, params.output_bytes, count);
  }
}

template <class Policy, class T, class Bins>
__global__ void __launch_bounds__(Policy::block_threads)
    histogram_small_kernel(const __grid_constant__ SmallHistogram<Bins> params) {
  constexpr int threads = Policy::block_threads, loads = Policy::loads, cluster = Policy::cluster;
  constexpr int items = vector_bytes / int(sizeof(T));
  auto& shared = ptx::dynamic_shared_memory<SmallShared>();
  const unsigned char* row = ptx::assume_global(params.input);
  const uint32 num_items = params.num_items;
  const uint32 gap = uint32(-reinterpret_cast<uint64>(row) % vector_bytes) / uint32(sizeof(T));
  const uint32 head = gap < num_items ? gap : num_items;  // before the first aligned vector
  const uint32 num_vectors = (num_items - head) / items;
  const unsigned char* body = row + head * uint32(sizeof(T));

  uint32 at = blockIdx.x * uint32(threads * loads) + threadIdx.x;
  Group<1> held[loads];
  const auto load = [&]() {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      if (at + i * threads < num_vectors) {
        held[i] = load_pack<uint32, 4>(body + int64(at + i * threads) * vector_bytes);
      }
    }
  };
  load();

  FixedTable<Policy::replicas> table(shared.words);
  const uint32 num_slots = params.num_slots;
  uint32* sums = shared.words + (num_slots * Policy::replicas + 3) / 4 * 4;
  const uint32 num_sums = cluster > 1 ? num_slots : Bins::shares_bins ? params.num_bins : 0;
  const uint32 clear = (num_slots * Policy::replicas + 3) / 4 * 4 + (num_sums + 3) / 4 * 4;
#pragma unroll 1
  for (uint32 i = threadIdx.x * 4; i < clear; i += threads * 4) {
    *reinterpret_cast<uint4*>(shared.words + i) = make_uint4(0, 0, 0, 0);
  }
  const auto& bins = params.bins.open(shared.words + clear);
  ptx::syncthreads();
  if constexpr (cluster > 1) ptx::barrier_cluster_arrive();

  const typename FixedTable<Policy::replicas>::Base bases[1] = {table.base(0)};
#pragma unroll 1
  while (true) {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      if (at + i * threads < num_vectors) count_group<T, 1>(bins, table, held[i], bases);
    }
    at += gridDim.x * uint32(threads * loads);
    if (at >= num_vectors) break;
    load();
  }
  if (blockIdx.x == 0) {
    const uint32 num_edges = num_items - num_vectors * items;  // fewer than two vectors hold
    if (threadIdx.x < num_edges) {
      const uint32 index = threadIdx.x + (threadIdx.x < head ? 0 : num_vectors * items);
      count_one(bins, table, load_item<T>(row + int64(index) * int(sizeof(T))), bases[0]);
    }
  }
  ptx::syncthreads();

  const uint32 others = gridDim.x / cluster - 1, mine = blockIdx.x / cluster;
  uint32 first = 0, last = num_slots;
  if constexpr (cluster > 1) {
    // Each block of the cluster owns as many slots.
    const uint32 owned = (num_slots + cluster - 1) / cluster;
    ptx::barrier_cluster_wait();
    for (uint32 slot = threadIdx.x; slot < num_slots; slot += threads) {
      const uint32 count = table.total(slot);
      if (count != 0) ptx::red_add_relaxed_cluster(sums + slot, slot / owned, count);
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    first = blockIdx.x % cluster * owned;
    last = first + owned < num_slots ? first + owned : num_slots;
  }
  constexpr int batch = threads < 256 ? 256 / threads : 1;
#pragma unroll 1
  for (uint32 slot = first + threadIdx.x; slot < last; slot += threads * batch) {
    uint32 counts[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const uint32 each = slot + k * threads;
      if (each < last) counts[k] = cluster > 1 ? sums[each] : table.total(each);
    }
    if (mine != others) {
      uint32* words = params.words + mine % Policy::copies * num_slots;
#pragma unroll
      for (int k = 0; k < batch; ++k) {
        const uint32 each = slot + k * threads;
        if (each < last) {
          ptx::atom_add_relaxed_gpu(words + each, counts[k] + (1u << small_count_bits));
        }
      }
      continue;
    }
    if (others > 0) {
      take_words<Policy::copies>(params.words, num_slots, slot, threads, last, others, counts);
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      if (slot + k * threads < last) put_small(params, slot + k * threads, counts[k], sums);
    }
  }
  if constexpr (Bins::shares_bins) {
    if (mine != others) return;
    ptx::syncthreads();
    for (uint32 bin = threadIdx.x; bin < params.num_bins; bin += threads) {
      store_count(params.output + bin * params.bin_stride, params.output_bytes, sums[bin]);
    }
  }
}

}  // namespace gpualgo

#endif
