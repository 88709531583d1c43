// Histogram: counts[k][b] = how many samples of kept place k are in bin b.
//
// Algorithm  A block counts its share of one row's samples in a table of its own
//            (histogram_tables.cuh) and adds that to the joint counters; the last block of a row
//            to arrive writes the result and clears them. A row's only block writes by itself.
//            flat: elements without gaps, 16 bytes a load, of one or up to four interleaved
//            channels, a tile ahead of the counting. strided: any strides, one element a load.
//            Shared-memory atomics instead of sorting: Gómez-Luna, González-Linares, Benavides and
//            Guil 2013, doi:10.1007/s00138-012-0443-3.
// Bytes      sizeof(T) per sample. Launches: one. Temporary storage: a counter for each slot.
// Skew       Equal neighbours of a thread are counted with one addition; lanes that add to one
//            counter do so in one step (ATOMS.POPC.INC, or replicas), so equal samples cost less.
// Bits       Integer additions commute: the same counts on every run and every GPU.
#ifndef GPUALGO_HISTOGRAM_CUH
#define GPUALGO_HISTOGRAM_CUH

#include "histogram_bins.cuh"
#include "histogram_tables.cuh"
#include "layout.cuh"
#include "tile_io.cuh"

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

// --- counting -----------------------------------------------------------------------------

// Counts one vector; item i belongs to the channel of bases[i % channels].
template <int channels, class Bins, class Table, class T, int items>
__device__ inline void count_vector(const Bins& bins, Table& table, const Pack<T, items>& pack,
                                    const typename Table::Base (&bases)[channels]) {
  typename Bins::Place places[items];
  bins.locate(pack, places);
  bool is_plain = true;  // all inside, none near an edge
  uint32 differences = 0;
#pragma unroll
  for (int i = 0; i < items; ++i) {
    is_plain = is_plain && places[i].is_inside && !bins.is_near(places[i]);
    differences |= bins.bin(places[i]) ^ bins.bin(places[0]);
  }
  if (is_plain) {
    if (channels == 1 && items > 1 && differences == 0) {
      table.add(bases[0], bins.bin(places[0]), items);
      return;
    }
#pragma unroll
    for (int i = 0; i < items; ++i) table.add(bases[i % channels], bins.bin(places[i]), 1);
    return;
  }
#pragma unroll
  for (int i = 0; i < items; ++i) {
    const int32 bin = bins.resolve(pack.items[i], places[i]);
    if (bin >= 0) table.add(bases[i % channels], uint32(bin), 1);
  }
}

// The same for 8-bit samples, of which only the value is counted.
template <int channels, class Table, class T, int items>
__device__ inline void count_bytes(Table& table, const Pack<T, items>& pack,
                                   const typename Table::Base (&bases)[channels]) {
  uint32 words[items / 4];
  memcpy(words, &pack, sizeof(words));
  if constexpr (channels == 1) {
    uint32 differences = words[0] ^ __funnelshift_l(words[0], words[0], 8);
#pragma unroll
    for (int i = 1; i < items / 4; ++i) differences |= words[i] ^ words[0];
    if (differences == 0) {
      table.add(bases[0], words[0] & 0xffu, items);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < items; ++i) {
    table.add(bases[i % channels], __byte_perm(words[i / 4], 0, 0x4440 + i % 4), 1);
  }
}

template <class Bins, class Table, class T>
__device__ inline void count_one(const Bins& bins, Table& table, const T& x,
                                 typename Table::Base base) {
  if constexpr (Bins::counts_values) {
    table.add(base, x, 1);
  } else {
    typename Bins::Place place[1];
    bins.locate(Pack<T, 1>{{x}}, place);
    const int32 bin = bins.resolve(x, place[0]);
    if (bin >= 0) table.add(base, uint32(bin), 1);
  }
}

// As many vectors as there are channels, so that an item's place in the group tells its channel.
// Words: a prefetched group of small items must not become a register for each.
template <int channels>
using Group = Pack<uint32, 4 * channels>;

template <class T, int channels, class Bins, class Table>
__device__ inline void count_group(const Bins& bins, Table& table, const Group<channels>& group,
                                   const typename Table::Base (&bases)[channels]) {
  constexpr int items = vector_bytes / int(sizeof(T));
#pragma unroll
  for (int v = 0; v < channels; ++v) {
    Pack<T, items> pack;
    memcpy(&pack, group.items + 4 * v, sizeof(pack));
    typename Table::Base turned[channels];
#pragma unroll
    for (int i = 0; i < channels; ++i) turned[i] = bases[(v * items + i) % channels];
    if constexpr (sizeof(T) == 1) {
      count_bytes<channels>(table, pack, turned);
    } else {
      count_vector<channels>(bins, table, pack, turned);
    }
  }
}

template <class Policy, int channels, int loads>
__device__ inline void load_groups(const unsigned char* source, Group<channels> (&groups)[loads]) {
#pragma unroll
  for (int i = 0; i < loads; ++i) {
    groups[i] = load_pack<uint32, 4 * channels>(source + i * Policy::block_threads *
                                                             int(sizeof(Group<channels>)));
  }
}

// Counts part `part` of `parts` of a row without gaps: tiles in turn, so that all blocks read one
// moving window; the parts that follow the last whole tile take what is left.
template <class Policy, class T, int channels, class Bins, class Table>
__device__ inline void count_flat(const Bins& bins, Table& table, const unsigned char* row,
                                  int64 num_items, uint32 slots_per_channel, int part, int parts) {
  constexpr int items = vector_bytes / int(sizeof(T)) * channels;  // of a group
  constexpr int per_thread = Policy::loads_in_flight / channels;
  constexpr int loads = per_thread > 0 ? per_thread : 1;
  constexpr int tile = Policy::block_threads * loads;  // groups
  constexpr int group_bytes = sizeof(Group<channels>);
  static_assert(Table::max_tile == 0 || tile * items <= Table::max_tile);

  const int gap = int(-reinterpret_cast<uint64>(row) % vector_bytes) / int(sizeof(T));
  const int head = gap < num_items ? gap : int(num_items);  // before the first aligned vector
  const int64 num_groups = (num_items - head) / items;
  const int64 num_tiles = num_groups / tile;
  typename Table::Base bases[channels];
#pragma unroll
  for (int i = 0; i < channels; ++i) {
    bases[i] = table.base(uint32(head + i) % channels * slots_per_channel);
  }

  const unsigned char* body = row + head * int(sizeof(T)) + int64(threadIdx.x) * group_bytes;
  const unsigned char* source = body + part * int64(tile) * group_bytes;
  const int64 step = parts * int64(tile) * group_bytes;
  Group<channels> next[loads];
  if (part < num_tiles) load_groups<Policy, channels>(source, next);
#pragma unroll 1
  for (int64 position = part; position < num_tiles;) {
    Group<channels> current[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) current[i] = next[i];
    source += step;
    position += parts;
    if (position < num_tiles) load_groups<Policy, channels>(source, next);
#pragma unroll
    for (int i = 0; i < loads; ++i) count_group<T, channels>(bins, table, current[i], bases);
    table.end_tile();
  }

  if (part != int(num_tiles % parts)) return;
  const int rest = int(num_groups - num_tiles * tile);
#pragma unroll 1
  for (int i = threadIdx.x; i < rest; i += Policy::block_threads) {
    const unsigned char* group = body + (num_tiles * tile + i - int(threadIdx.x)) * group_bytes;
    count_group<T, channels>(bins, table, load_pack<uint32, 4 * channels>(group), bases);
  }
  table.end_tile();
  const int64 num_aligned = num_groups * items;
  const int num_edges = int(num_items - num_aligned);
  for (int i = threadIdx.x; i < num_edges; i += Policy::block_threads) {
    const int64 index = i < head ? i : num_aligned + i;
    const auto base = table.base(uint32(index % channels) * slots_per_channel);
    count_one(bins, table, load_item<T>(row + index * int(sizeof(T))), base);
  }
}

// --- results ------------------------------------------------------------------------------

__device__ inline void write_count(const HistogramCommon& common, int64 place, int64 bin,
                                   uint64 count) {
  int64 offsets[2];
  common.kept.offsets(place, offsets);
  unsigned char* address = common.output + offsets[1] + bin * common.bin_stride;
  if (common.output_bytes == 8) {
    *reinterpret_cast<uint64*>(address) = count;
  } else if (common.output_bytes == 4) {
    *reinterpret_cast<uint32*>(address) = uint32(count);
  } else if (common.output_bytes == 2) {
    *reinterpret_cast<uint16*>(address) = uint16(count);
  } else {
    *address = uint8(count);
  }
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
      for (int64 bin = threadIdx.x; bin < common.num_bins; bin += blockDim.x) {
        write_count(common, first_place + channel, bin, 0);
      }
    }
  }
  __syncthreads();
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

// Ends a block's part of a row, whose `channels` histograms start at kept place first_place.
template <class Bins, class Table>
__device__ inline void finish_row(const HistogramCommon& common, HistogramShared& shared,
                                  const Bins& bins, Table& table, int64 row, int64 first_place,
                                  uint32 channels) {
  __syncthreads();
  put_counts(common, bins, table, first_place, channels);
  if (common.result != join_rows) return;
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = arrive(common.tickets + row) == uint32(common.blocks_per_row.value - 1);
  }
  __syncthreads();
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
  auto& shared = dynamic_shared_memory<HistogramShared>();
  const HistogramCommon& common = params.common;
  const int64 row = common.blocks_per_row.divide(blockIdx.x);
  const int part = int(blockIdx.x - row * common.blocks_per_row.value);
  const int64 first_place = row * channels;
  Table table(shared.words, common.table, {common.counters, common.counter_bytes},
              first_place * common.num_bins);
  const auto& bins = params.bins.open(shared.words + common.table.words);
  __syncthreads();
  int64 offsets[2];
  common.kept.offsets(first_place, offsets);
  count_flat<Policy, T, channels>(bins, table, common.input + offsets[0], params.num_items,
                                  uint32(common.table.num_slots) / channels, part,
                                  int(common.blocks_per_row.value));
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
  auto& shared = dynamic_shared_memory<HistogramShared>();
  const HistogramCommon& common = params.common;
  const int64 row = common.blocks_per_row.divide(blockIdx.x);
  const int64 part = int64(blockIdx.x) - row * common.blocks_per_row.value;
  const int64 first_place = row * params.channels;
  const int64 left = params.num_places - first_place;
  const uint32 channels = uint32(left < params.channels ? left : params.channels);
  Table table(shared.words, common.table, {common.counters, common.counter_bytes},
              first_place * common.num_bins);
  const auto& bins = params.bins.open(shared.words + common.table.words);
  __syncthreads();

  const uint32 slots_per_channel = uint32(common.table.num_slots) / uint32(params.channels);
  const uint32 width = uint32(Policy::block_threads) / uint32(params.channels);
  const uint32 channel = threadIdx.x % uint32(params.channels);
  const uint32 lane = threadIdx.x / uint32(params.channels);
  const bool is_active = lane < width && channel < channels;
  const auto base = table.base(channel * slots_per_channel);
  int64 offsets[2];
  common.kept.offsets(first_place + (is_active ? channel : 0), offsets);
  const unsigned char* source = common.input + offsets[0];
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
