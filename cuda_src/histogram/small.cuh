// Histogram of few samples: one row without gaps, counted by one wave of blocks.
//
// Algorithm  Latency is all. A thread asks for its samples first; meanwhile the table is cleared
// and
//            bins are opened. A block adds each of its counts, zeros too, to a joint word, which
//            also counts the blocks that have been there. The last block adds nothing: it waits
//            for each word until all others have been there, and empties it. So no block makes two
//            trips to L2, and nothing orders memory but the words themselves.
//            The last block is the last to begin: all that it waits for run or have run.
// Bytes      sizeof(T) per sample. Launches: one. Temporary storage: 4 bytes for each counter of a
//            block, for each copy of the joint words.
// Bits       Integer additions commute: the same counts on every run and every GPU.
#ifndef GPUALGO_HISTOGRAM_SMALL_CUH
#define GPUALGO_HISTOGRAM_SMALL_CUH

#include "histogram/count.cuh"
#include "histogram/result.cuh"
#include "parts/ptx.cuh"

namespace gpualgo {

template <int block_threads_, int loads_, int replicas_, int copies_>
struct SmallPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads = loads_;        // vectors that a thread has under way
  static constexpr int replicas = replicas_;  // of each counter of a block
  static constexpr int copies = copies_;      // of the joint words; blocks take them in turn
  // Slots that a thread joins at once.
  static constexpr int batch = block_threads < 256 ? 256 / block_threads : 1;
};

template <class Bins>
struct SmallHistogram {
  const unsigned char* input;
  unsigned char* output;
  uint32* words;  // joint ones; all zero before and after; none for one block
  int64 bin_stride;
  uint32 num_items, num_slots, num_bins;
  uint32 output_bytes;  // of a count of the result: 1, 2, 4 or 8
  Bins bins;
};

struct SmallShared {
  alignas(16) uint32 words[4];  // the table's, sums, then what the bins put there; more than 4
};

template <class Bins>
__device__ inline void put_small_count(const SmallHistogram<Bins>& params, uint32 bin,
                                       uint32 count) {
  store_count(params.output + bin * params.bin_stride, params.output_bytes, count);
}

// A joint word: so many bits of the count, above them how many blocks have been there.
constexpr int joint_count_bits = 24;
constexpr uint32 joint_arrival = 1u << joint_count_bits;

// The vectors of a row, and the samples before and after them.
template <class T>
struct AlignedRow {
  static constexpr uint32 items = vector_bytes / sizeof(T);
  const unsigned char* row;
  uint32 head, num_vectors, num_edges;

  __device__ AlignedRow(const unsigned char* row_, uint32 num_items) : row(row_) {
    const uint32 gap = uint32(-reinterpret_cast<uint64>(row) % vector_bytes) / uint32(sizeof(T));
    head = gap < num_items ? gap : num_items;
    num_vectors = (num_items - head) / items;
    num_edges = num_items - num_vectors * items;
  }

  __device__ Group<1> vector(uint32 i) const {
    return load_pack<uint32, 4>(row + head * uint32(sizeof(T)) + int64(i) * vector_bytes);
  }
  __device__ T edge(uint32 i) const {
    const uint32 index = i < head ? i : num_vectors * items + i;
    return load_item<T>(row + int64(index) * int(sizeof(T)));
  }
};

// The joint words of slots `first`, first + distance and so on.
template <class Policy>
struct JointWords {
  static constexpr int copies = Policy::copies, batch = Policy::batch;
  uint32* words;
  uint32 num_slots, first;

  __device__ uint32 slot(int k) const { return first + uint32(k * Policy::block_threads); }
  __device__ uint32* word(int k, uint32 copy) const { return words + copy * num_slots + slot(k); }

  __device__ void add(const uint32 (&counts)[batch]) const {
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      if (slot(k) >= num_slots) break;
      ptx::atom_add_relaxed_gpu(word(k, blockIdx.x % copies), counts[k] + joint_arrival);
    }
  }

  // Adds what the other blocks have counted, as soon as they all have, and empties the words.
  __device__ void take(uint32 (&counts)[batch]) const {
    const uint32 others = gridDim.x - 1;
    uint32 found[batch][copies];
    bool is_whole;
    do {
#pragma unroll
      for (int k = 0; k < batch; ++k) {
#pragma unroll
        for (int i = 0; i < copies; ++i) {
          found[k][i] = slot(k) < num_slots ? ptx::ld_relaxed_gpu(word(k, i)) : 0;
        }
      }
      is_whole = true;
#pragma unroll
      for (int k = 0; k < batch; ++k) {
#pragma unroll
        for (int i = 0; i < copies; ++i) {
          const uint32 awaited = (others + (copies - 1 - i)) / copies;
          is_whole = is_whole && (found[k][i] / joint_arrival == awaited || slot(k) >= num_slots);
        }
      }
    } while (!is_whole);
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      if (slot(k) >= num_slots) break;
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        counts[k] += found[k][i] % joint_arrival;
        ptx::st_relaxed_gpu(word(k, i), 0u);
      }
    }
  }
};

// Where a block keeps its counts, in words of shared memory, a multiple of 4 each.
template <class Policy, class Bins>
struct SmallWords {
  static constexpr uint32 num_values = 256;  // of 8-bit samples
  uint32 table, sums, all;

  __device__ explicit SmallWords(const SmallHistogram<Bins>& params) {
    table = (params.num_slots * Policy::replicas + 3) / 4 * 4;
    sums = table + (Bins::shares_bins ? num_values : 0);  // before them the bin of each value
    all = sums + (Bins::shares_bins ? (params.num_bins + 3) / 4 * 4 : 0);
  }
};

// Joins the counts of a slot, which is a bin or a value. Several values may have one bin: their
// counts go to `sums` first.
template <class Policy, class Bins, class Table>
__device__ inline void join_small_counts(const SmallHistogram<Bins>& params, const Table& table,
                                         const uint32* bin_of_value, uint32* sums) {
  constexpr int threads = Policy::block_threads, batch = Policy::batch;
  const uint32 num_slots = params.num_slots;
  const bool is_last = blockIdx.x == gridDim.x - 1;
#pragma unroll 1
  for (uint32 first = threadIdx.x; first < num_slots; first += threads * batch) {
    const JointWords<Policy> joint{params.words, num_slots, first};
    uint32 counts[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      counts[k] = joint.slot(k) < num_slots ? table.total(joint.slot(k)) : 0;
    }
    if (!is_last) {
      joint.add(counts);
      continue;
    }
    if (gridDim.x > 1) joint.take(counts);
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const uint32 slot = joint.slot(k);
      if (slot >= num_slots) break;
      if constexpr (Bins::shares_bins) {
        const uint32 bin = bin_of_value[slot];
        if (bin < params.num_bins) ptx::atom_add_relaxed_cta(sums + bin, counts[k]);
      } else if constexpr (Bins::counts_values) {
        const uint32 bin = params.bins.bin_of(slot);
        if (bin < params.num_bins) put_small_count(params, bin, counts[k]);
      } else {
        put_small_count(params, slot, counts[k]);
      }
    }
  }
  if constexpr (Bins::shares_bins) {
    if (!is_last) return;
    ptx::syncthreads();
    for (uint32 bin = threadIdx.x; bin < params.num_bins; bin += threads) {
      put_small_count(params, bin, sums[bin]);
    }
  }
}

template <class Policy, class T, class Bins>
__global__ void __launch_bounds__(Policy::block_threads)
    histogram_small_kernel(const __grid_constant__ SmallHistogram<Bins> params) {
  constexpr int threads = Policy::block_threads, loads = Policy::loads;
  auto& shared = ptx::dynamic_shared_memory<SmallShared>();
  const AlignedRow<T> row(ptx::assume_global(params.input), params.num_items);
  uint32 at = blockIdx.x * uint32(threads * loads) + threadIdx.x;
  Group<1> held[loads];
  const auto load = [&]() {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      if (at + i * threads < row.num_vectors) held[i] = row.vector(at + i * threads);
    }
  };
  load();

  FixedTable<Policy::replicas> table(shared.words);
  const SmallWords<Policy, Bins> words(params);
#pragma unroll 1
  for (uint32 i = threadIdx.x * 4; i < words.all; i += threads * 4) {
    *reinterpret_cast<uint4*>(shared.words + i) = make_uint4(0, 0, 0, 0);
  }
  const auto& bins = params.bins.open(shared.words + words.all);
  ptx::syncthreads();
  if constexpr (Bins::shares_bins) {
    if (blockIdx.x == gridDim.x - 1) {
      for (uint32 i = threadIdx.x; i < words.num_values; i += threads) {
        shared.words[words.table + i] = bins.bin_of(i);
      }
    }
  }

  const typename FixedTable<Policy::replicas>::Base bases[1] = {table.base(0)};
#pragma unroll 1
  while (true) {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      if (at + i * threads < row.num_vectors) count_group<T, 1>(bins, table, held[i], bases);
    }
    at += gridDim.x * uint32(threads * loads);
    if (at >= row.num_vectors) break;
    load();
  }
  if (blockIdx.x == 0 && threadIdx.x < row.num_edges) {  // fewer than two vectors hold
    count_one(bins, table, row.edge(threadIdx.x), bases[0]);
  }
  ptx::syncthreads();
  join_small_counts<Policy>(params, table, shared.words + words.table, shared.words + words.sums);
}

}  // namespace gpualgo

#endif
