// Histogram: counts[k][b] = how many samples of kept place k are in bin b.
//
// Algorithm  A block counts its share of one row's samples in a table of its own
//            (histogram/tables.cuh) and adds that to the joint counters; the last block of a row
//            to arrive writes the result and clears them. A row's only block writes by itself.
//            flat: elements without gaps, 16 bytes a load, of one or up to four interleaved
//            channels, a tile ahead of the counting. strided: any strides, one element a load.
//            Shared-memory atomics instead of sorting: Gómez-Luna, González-Linares, Benavides and
//            Guil 2013, doi:10.1007/s00138-012-0443-3.
// Bytes      sizeof(T) per sample. Launches: one. Temporary storage: a counter for each slot.
// Skew       Equal neighbours of a thread are counted with one addition. Lanes that add one to one
//            counter do so in one step (ATOMS.POPC.INC), elsewhere once they are seen to be alike.
// Bits       Integer additions commute: the same counts on every run and every GPU.
#ifndef GPUALGO_HISTOGRAM_KERNEL_CUH
#define GPUALGO_HISTOGRAM_KERNEL_CUH

#include "histogram/count.cuh"
#include "histogram/result.cuh"
#include "parts/ptx.cuh"

namespace gpualgo {

template <int block_threads_, int loads_in_flight_, int min_blocks_>
struct HistogramPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads_in_flight = loads_in_flight_;  // vectors, or elements, per thread
  static constexpr int min_blocks = min_blocks_;            // per multiprocessor
};

enum HistogramResult : int64 {
  write_rows = 0,   // a row has one block, which writes the result
  join_rows = 1,    // the last block of a row writes the result from the joint counters
  add_to_rows = 2,  // the joint counters are the result
};

struct HistogramCommon {
  const unsigned char* input;
  unsigned char* output;
  unsigned char* counters;  // joint ones; all zero before, and after unless they are the result
  uint32* tickets;          // one per row; all zero before and after
  int64 counter_bytes;
  int64 result;        // HistogramResult
  int64 num_bins;      // of the result
  int64 output_bytes;  // of a count of the result: 1, 2, 4 or 8
  int64 bin_stride;    // of the result, in bytes
  TableSize table;
  Divisor blocks_per_row;
  Layout<2> kept;  // operand 0: the input, 1: the output
};

struct HistogramShared {
  uint32 is_last;
  alignas(16) uint32 words[4];  // the table's, then what the bins put there; more than 4
};

// --- results ------------------------------------------------------------------------------

__device__ inline void write_count(const HistogramCommon& common, int64 place, int64 bin,
                                   uint64 count) {
  int64 offsets[2];
  common.kept.offsets(place, offsets);
  store_count(common.output + offsets[1] + bin * common.bin_stride, common.output_bytes, count);
}

// What becomes of a block's count of a bin: it is a result, or added to the joint counter.
__device__ inline void put_count(const HistogramCommon& common, int64 place, int64 bin,
                                 uint32 count) {
  if (common.result == write_rows) {
    write_count(common, place, bin, count);
  } else if (count != 0) {
    const JointCounters joint{common.counters, common.counter_bytes};
    joint.add(place * common.num_bins + bin, count);
  }
}

template <class Bins, class Table>
__device__ inline void put_counts(const HistogramCommon& common, const Bins&, Table& table,
                                  int64 first_place, uint32 channels) {
  const uint32 num_bins = uint32(common.num_bins);
  for (uint32 slot = threadIdx.x; slot < channels * num_bins; slot += blockDim.x) {
    const uint32 channel = slot / num_bins;
    put_count(common, first_place + channel, slot - channel * num_bins, table.total(slot));
  }
}

// Values in one bin follow each other; the thread of the first of them adds them up.
__device__ inline void put_counts(const HistogramCommon& common, const ByteBins& bins,
                                  ReplicatedTable& table, int64 first_place, uint32 channels) {
  constexpr uint32 values = 256;
  for (uint32 slot = threadIdx.x; slot < channels * values; slot += blockDim.x) {
    table.keep_total(slot);
  }
  if (common.result == write_rows) {
    for (uint32 channel = 0; channel < channels; ++channel) {
#pragma unroll 1
      for (int64 bin = threadIdx.x; bin < common.num_bins; bin += blockDim.x) {
        write_count(common, first_place + channel, bin, 0);
      }
    }
  }
  ptx::syncthreads();
  for (uint32 slot = threadIdx.x; slot < channels * values; slot += blockDim.x) {
    const uint32 channel = slot / values, value = slot % values;
    const int32 bin = bins.bins[value];
    if (bin < 0 || (value > 0 && bins.bins[value - 1] == bin)) continue;
    uint32 sum = 0;
    for (uint32 i = value; i < values && bins.bins[i] == bin; ++i) {
      sum += table.kept_total(channel * values + (i ^ uint32(bins.flip)));
    }
    put_count(common, first_place + channel, bin, sum);
  }
}

// Values that are bins.
__device__ inline void put_counts(const HistogramCommon& common, const UnitBins& bins,
                                  ReplicatedTable& table, int64 first_place, uint32 channels) {
  constexpr uint32 values = 256;
  for (uint32 slot = threadIdx.x; slot < channels * values; slot += blockDim.x) {
    const uint32 bin = bins.bin_of(slot % values);
    if (bin < uint32(common.num_bins)) {
      put_count(common, first_place + slot / values, bin, table.total(slot));
    }
  }
}

// Ends a block's part of a row, whose `channels` histograms start at kept place first_place.
template <class Bins, class Table>
__device__ inline void finish_row(const HistogramCommon& common, HistogramShared& shared,
                                  const Bins& bins, Table& table, int row, int64 first_place,
                                  uint32 channels) {
  ptx::syncthreads();
  put_counts(common, bins, table, first_place, channels);
  if (common.result != join_rows) return;
  ptx::syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = ptx::atom_add_acq_rel_gpu<1>(common.tickets + row) ==
                     uint32(common.blocks_per_row.value - 1);
  }
  ptx::syncthreads();
  if (!shared.is_last) return;
  const JointCounters joint{common.counters, common.counter_bytes};
  const uint32 num_bins = uint32(common.num_bins);
  for (uint32 slot = threadIdx.x; slot < channels * num_bins; slot += blockDim.x) {
    const uint32 channel = slot / num_bins;
    const uint64 count = joint.take(first_place * common.num_bins + slot);
    write_count(common, first_place + channel, slot - channel * num_bins, count);
  }
  if (threadIdx.x == 0) common.tickets[row] = 0;
}

// --- kernels ------------------------------------------------------------------------------

template <class Bins>
struct FlatHistogram {
  HistogramCommon common;
  int64 num_items;  // of a row, all channels together
  Bins bins;
};

// A row holds the samples of `channels` kept places, in turn.
template <class Policy, class T, class Bins, class Table, int channels>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    histogram_flat_kernel(const __grid_constant__ FlatHistogram<Bins> params) {
  auto& shared = ptx::dynamic_shared_memory<HistogramShared>();
  const HistogramCommon& common = params.common;
  const int row = int(common.blocks_per_row.divide(blockIdx.x));
  const int part = int(blockIdx.x) - row * int(common.blocks_per_row.value);
  const int64 first_place = int64(row) * channels;
  Table table(shared.words, common.table, {common.counters, common.counter_bytes},
              first_place * common.num_bins);
  const auto& bins = params.bins.open(shared.words + common.table.words);
  ptx::syncthreads();
  int64 offsets[2];
  common.kept.offsets(first_place, offsets);
  count_flat<Policy, T, channels>(bins, table, ptx::assume_global(common.input) + offsets[0],
                                  params.num_items, uint32(common.table.num_slots) / channels, part,
                                  common.blocks_per_row);
  finish_row(common, shared, bins, table, row, first_place, channels);
}

template <class Bins>
struct StridedHistogram {
  HistogramCommon common;
  int64 num_items;   // samples of a kept place
  int64 num_places;  // kept ones
  int64 channels;    // kept places of a block, at most as many as it has threads
  Layout<1> samples;
  Bins bins;
};

// A row is a group of kept places. A thread stays with one of them.
template <class Policy, class T, class Bins, class Table>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    histogram_strided_kernel(const __grid_constant__ StridedHistogram<Bins> params) {
  constexpr int loads = Policy::loads_in_flight;
  auto& shared = ptx::dynamic_shared_memory<HistogramShared>();
  const HistogramCommon& common = params.common;
  const int row = int(common.blocks_per_row.divide(blockIdx.x));
  const int part = int(blockIdx.x) - row * int(common.blocks_per_row.value);
  const int64 first_place = row * params.channels;
  const int64 left = params.num_places - first_place;
  const uint32 channels = uint32(left < params.channels ? left : params.channels);
  Table table(shared.words, common.table, {common.counters, common.counter_bytes},
              first_place * common.num_bins);
  const auto& bins = params.bins.open(shared.words + common.table.words);
  ptx::syncthreads();

  const uint32 slots_per_channel = uint32(common.table.num_slots) / uint32(params.channels);
  const uint32 width = uint32(Policy::block_threads) / uint32(params.channels);
  const uint32 channel = threadIdx.x % uint32(params.channels);
  const uint32 lane = threadIdx.x / uint32(params.channels);
  const bool is_active = lane < width && channel < channels;
  const auto base = table.base(channel * slots_per_channel);
  int64 offsets[2];
  common.kept.offsets(first_place + (is_active ? channel : 0), offsets);
  const unsigned char* source = ptx::assume_global(common.input) + offsets[0];
  const int64 tile = int64(width) * loads;
  for (int64 begin = part * tile; begin < params.num_items;
       begin += tile * common.blocks_per_row.value) {
    T held[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const int64 index = begin + i * width + lane;
      if (is_active && index < params.num_items) {
        held[i] = load_item<T>(source + params.samples.offset(index));
      }
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const int64 index = begin + i * width + lane;
      if (is_active && index < params.num_items) count_one(bins, table, held[i], base);
    }
    table.end_tile();
  }
  finish_row(common, shared, bins, table, row, first_place, channels);
}

}  // namespace gpualgo

#endif
