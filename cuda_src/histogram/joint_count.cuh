// Histogram of several dimensions: counts[k][b0][b1]... of the samples of kept place k.
//
// Algorithm  As in histogram/kernel.cuh, with samples of several numbers: a block counts its share
//            of one row's samples in a table of its own and adds that to the joint counters; the
//            last block of a row to arrive writes the result and clears them.
// Bytes      those of each sample's numbers, once. Launches: one. Temporary storage: a counter for
//            each slot.
// Bits       Integer additions commute: the same counts on every run and every GPU.
#ifndef GPUALGO_HISTOGRAM_JOINT_COUNT_CUH
#define GPUALGO_HISTOGRAM_JOINT_COUNT_CUH

#include "histogram/joint.cuh"
#include "histogram/kernel.cuh"
#include "parts/operator.cuh"

namespace gpualgo {

template <int leaves, class Bins, class Access>
struct JointHistogram {
  const unsigned char* input[leaves];
  unsigned char* output;
  unsigned char* counters;  // joint ones; all zero before, and after unless they are the result
  uint32* tickets;          // one per row; all zero before and after
  int64 counter_bytes;
  int64 result;        // HistogramResult
  int64 num_bins;      // of all dimensions
  int64 output_bytes;  // of a count of the result: 1, 2, 4 or 8
  TableSize table;
  Layout<1> places, cells;  // of the result
  JointRows<leaves, Access> rows;
  Bins bins;
};

template <class Bins, class Table, class T, int items>
__device__ inline void count_joint(const Bins& bins, Table& table, const Pack<T, items>& samples,
                                   typename Table::Base base) {
  int32 found[items];
  bins.find(samples, found);
#pragma unroll
  for (int i = 0; i < items; ++i) {
    if (found[i] < 0) continue;
    if constexpr (Table::suffers_from_skew) {
      if (is_skewed(uint32(found[i]))) {
        table.add_once(base, uint32(found[i]), 1);
        continue;
      }
    }
    table.add(base, uint32(found[i]), 1);
  }
}

// Calls body(place, bin, slot) for each of a row's counters.
template <class Body>
__device__ inline void for_each_slot(int64 first_place, uint32 channels, uint32 num_bins,
                                     Body body) {
  for (uint32 slot = threadIdx.x; slot < channels * num_bins; slot += blockDim.x) {
    const uint32 channel = slot / num_bins;
    body(first_place + channel, int64(slot - channel * num_bins), slot);
  }
}

template <class Params, class Table>
__device__ inline void finish_joint_row(const Params& params, JointShared& shared,
                                        const Table& table) {
  const int64 first_place = params.rows.first_place();
  const uint32 channels = params.rows.num_channels(), num_bins = uint32(params.num_bins);
  const JointCounters joint{params.counters, params.counter_bytes};
  const auto write = [&](int64 place, int64 bin, uint64 count) {
    unsigned char* address = params.output + params.places.offset(place) + params.cells.offset(bin);
    if (params.output_bytes == 8) {
      *reinterpret_cast<uint64*>(address) = count;
    } else if (params.output_bytes == 4) {
      *reinterpret_cast<uint32*>(address) = uint32(count);
    } else if (params.output_bytes == 2) {
      *reinterpret_cast<uint16*>(address) = uint16(count);
    } else {
      *address = uint8(count);
    }
  };
  ptx::syncthreads();
  if (params.result == write_rows) {
    for_each_slot(first_place, channels, num_bins, [&](int64 place, int64 bin, uint32 slot) {
      write(place, bin, table.total(slot));
    });
    return;
  }
  for_each_slot(first_place, channels, num_bins, [&](int64 place, int64 bin, uint32 slot) {
    const uint32 count = table.total(slot);
    if (count != 0) joint.add(place * num_bins + bin, count);
  });
  if (params.result != join_rows) return;
  ptx::syncthreads();
  const int row = params.rows.row();
  if (threadIdx.x == 0) {
    shared.is_last = ptx::atom_add_acq_rel_gpu<1>(params.tickets + row) ==
                     uint32(params.rows.blocks_per_row.value - 1);
  }
  ptx::syncthreads();
  if (!shared.is_last) return;
  for_each_slot(first_place, channels, num_bins, [&](int64 place, int64 bin, uint32) {
    write(place, bin, joint.take(place * num_bins + bin));
  });
  if (threadIdx.x == 0) params.tickets[row] = 0;
}

template <class Policy, class Op, class T, class Bins, class Table, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) histogram_joint_kernel(
    const __grid_constant__ ParamsFor<Op, JointHistogram<num_leaves<T>, Bins, Access>> params) {
  take_numbers<Op>(params);
  auto& shared = ptx::dynamic_shared_memory<JointShared>();
  const auto& rows = params.rows;
  Table table(shared.words, params.table, {params.counters, params.counter_bytes},
              rows.first_place() * params.num_bins);
  const auto bins = params.bins.open(shared.words + params.table.words);
  ptx::syncthreads();
  const auto base = table.base(rows.channel() * uint32(params.num_bins));
  rows.template walk<Policy, T>(
      params.input, [&](const auto& samples) { count_joint(bins, table, samples, base); },
      [&]() { table.end_tile(); });
  finish_joint_row(params, shared, table);
}

}  // namespace gpualgo

#endif
