// Counting samples into a block's table: one, a vector, and a row without gaps.
#ifndef GPUALGO_HISTOGRAM_COUNT_CUH
#define GPUALGO_HISTOGRAM_COUNT_CUH

#include "histogram/bins.cuh"
#include "histogram/tables.cuh"
#include "parts/intrinsics.cuh"
#include "parts/layout.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

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
      if constexpr (Table::suffers_from_skew) {
        table.add_once(bases[0], bins.bin(places[0]), items);
      } else {
        table.add(bases[0], bins.bin(places[0]), items);
      }
      return;
    }
    if constexpr (Table::suffers_from_skew) {
      if (is_skewed(bins.bin(places[0]))) {
#pragma unroll
        for (int i = 0; i < items; ++i) table.add_once(bases[i % channels], bins.bin(places[i]), 1);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < items; ++i) table.add(bases[i % channels], bins.bin(places[i]), 1);
    return;
  }
#pragma unroll
  for (int i = 0; i < items; ++i) count_one(bins, table, pack.items[i], bases[i % channels]);
}

// The same for 8-bit samples, of which only the value is counted.
template <int channels, class Table, class T, int items>
__device__ inline void count_bytes(Table& table, const Pack<T, items>& pack,
                                   const typename Table::Base (&bases)[channels]) {
  uint32 words[items / 4];
  memcpy(words, &pack, sizeof(words));
  if constexpr (channels == 1) {
    uint32 differences = words[0] ^ ptx::funnelshift_l(words[0], words[0], 8);
#pragma unroll
    for (int i = 1; i < items / 4; ++i) differences |= words[i] ^ words[0];
    if (differences == 0) {
      table.add(bases[0], words[0] & 0xffu, items);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < items; ++i) {
    table.add(bases[i % channels], ptx::byte_perm(words[i / 4], 0, 0x4440 + i % 4), 1);
  }
}

// As many vectors as there are channels, so that an item's place in the group tells its channel.
// Words: a prefetched group of small items must not become a register for each.
template <int channels>
using Group = Pack<uint32, 4 * channels>;

template <class T, int channels, class Bins, class Table>
__device__ inline void count_group(const Bins& bins, Table& table, const Group<channels>& group,
                                   const typename Table::Base (&bases)[channels]) {
  constexpr int vector = vector_bytes / int(sizeof(T));
  constexpr int items = sizeof(T) == 2 ? vector / 2 : vector;  // at once: registers are few
#pragma unroll
  for (int first = 0; first < vector * channels; first += items) {
    Pack<T, items> pack;
    memcpy(&pack, group.items + first * int(sizeof(T)) / 4, sizeof(pack));
    typename Table::Base turned[channels];
#pragma unroll
    for (int i = 0; i < channels; ++i) turned[i] = bases[(first + i) % channels];
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

// Counts part `part` of a row without gaps: tiles in turn, so that all blocks read one moving
// window. The part after that of the last whole tile also takes what is no whole tile, and first:
// few registers are left for what the loop would have to keep.
template <class Policy, class T, int channels, class Bins, class Table>
__device__ inline void count_flat(const Bins& bins, Table& table, const unsigned char* row,
                                  int64 num_items, uint32 slots_per_channel, int part,
                                  const Divisor& num_parts) {
  constexpr int items = vector_bytes / int(sizeof(T)) * channels;  // of a group
  constexpr int per_thread = Policy::loads_in_flight / channels;
  constexpr int loads = per_thread > 0 ? per_thread : 1;
  constexpr int tile = Policy::block_threads * loads;  // groups
  constexpr int group_bytes = sizeof(Group<channels>);
  // Between two calls of end_tile a channel has a tile, or less with both ends of the row.
  static_assert(Table::max_tile == 0 || (tile + 1) * items / channels <= Table::max_tile);

  const int gap = int(-reinterpret_cast<uint64>(row) % vector_bytes) / int(sizeof(T));
  const int head = gap < num_items ? gap : int(num_items);  // before the first aligned vector
  const int64 num_groups = (num_items - head) / items;
  const int64 num_tiles = num_groups / tile;
  typename Table::Base bases[channels];
#pragma unroll
  for (int i = 0; i < channels; ++i) {
    bases[i] = table.base(uint32(head + i) % channels * slots_per_channel);
  }

  // Whole rounds of all parts, then one more tile for the first `extra` parts.
  const int64 rounds = num_parts.divide(num_tiles);
  const int extra = int(num_tiles - rounds * num_parts.value);
  const unsigned char* body = row + head * int(sizeof(T)) + int64(threadIdx.x) * group_bytes;
  if (part == extra) {
    const int rest = int(num_groups - num_tiles * tile);
    const unsigned char* source = body + num_tiles * (tile * group_bytes);
#pragma unroll 1
    for (int i = threadIdx.x; i < rest; i += Policy::block_threads) {
      count_group<T, channels>(bins, table, load_pack<uint32, 4 * channels>(source), bases);
      source += Policy::block_threads * group_bytes;
    }
    const int64 num_aligned = num_groups * items;
    const int num_edges = int(num_items - num_aligned);
#pragma unroll 1
    for (int i = threadIdx.x; i < num_edges; i += Policy::block_threads) {
      const int64 index = i < head ? i : num_aligned + i;
      const auto base = table.base(uint32(i % channels) * slots_per_channel);
      count_one(bins, table, load_item<T>(row + index * int(sizeof(T))), base);
    }
    table.end_tile();
  }

  const unsigned char* source = body + part * int64(tile) * group_bytes;
  Group<channels> next[loads];
  uint32 left = uint32(rounds) + (part < extra);
  if (left > 0) load_groups<Policy, channels>(source, next);
#pragma unroll 1
  while (left > 0) {
    Group<channels> current[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) current[i] = next[i];
    source += num_parts.value * (tile * group_bytes);
    --left;
    if (left > 0) load_groups<Policy, channels>(source, next);
#pragma unroll
    for (int i = 0; i < loads; ++i) count_group<T, channels>(bins, table, current[i], bases);
    table.end_tile();
  }
}

}  // namespace gpualgo

#endif
