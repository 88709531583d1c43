// Sorting what each tile has of each segment; stable.
//
// Algorithm  A thread sorts its neighbours in registers by odd-even transposition, which changes
//            places of neighbours alone: no exchange crosses the begin of a segment. Then what a
//            segment has on both sides of a boundary between threads is merged in shared memory,
//            boundaries between pairs of threads first, then of fours, and so on; each thread takes
//            as many elements, from where "merge path" says (Odeh, Green, Mwassi, Shmueli and Birk
//            2012, doi:10.1109/IPDPSW.2012.202). A round without such a boundary is left out: short
//            segments that begin where threads do take none. (Segments sorted by merges across
//            their heads: Baxter, "Modern GPU", 2013, moderngpu.github.io/segsort.html.)
// Bytes      2 (k + v) per key of k bytes with values of v, and 1/8; launches: one. Values are
//            fetched when the order is known.
// In place   safe: a tile is read whole before any of it is written.
#ifndef GPUALGO_SEGMENTED_SORT_TILES_CUH
#define GPUALGO_SEGMENTED_SORT_TILES_CUH

#include "merge_sort/order.cuh"
#include "segmented_sort/spans.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int min_blocks_, int shared_bytes_, int merge_items_,
          bool overlaps_>
struct SegmentTilePolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;  // elements per thread
  static constexpr int tile_items = block_threads_ * items_;
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr int merge_items = merge_items_;  // of a tile that is merged
  static constexpr bool overlaps = overlaps_;       // launched while the kernel before still runs
};

template <int key_leaves, int value_leaves>
struct SegmentBuffer {
  unsigned char* keys[key_leaves];
  unsigned char* values[value_leaves];
};

template <int key_leaves, int value_leaves>
struct SegmentTilesParams {
  const unsigned char* keys[key_leaves];
  const unsigned char* values[value_leaves];     // null: positions are wanted
  SegmentBuffer<key_leaves, value_leaves> home;  // where an even number of rounds ends
  SegmentBuffer<key_leaves, value_leaves> side;
  const uint32* heads;
  const int64* bounds;
  const SegmentSpan* spans;  // null: there is one tile
  int64 num_items, num_tiles;
};

template <class Policy, class Order, class T, class V>
struct SegmentTileSort {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int tile_items = Policy::tile_items;
  static constexpr int words = tile_items / warp_threads;
  static constexpr uint32 no_head = tile_items;
  static_assert(items <= 32 && (items & (items - 1)) == 0 && tile_items <= 1 << 15);
  using Params = SegmentTilesParams<num_leaves<T>, num_leaves<V>>;
  using Buffer = SegmentBuffer<num_leaves<T>, num_leaves<V>>;
  using Near = Nearest<int, threads>;

  struct Shared {
    alignas(16) T keys[slot_of<items>(tile_items) + 1];
    uint16 places[has_values<V> ? slot_of<items>(tile_items) + 1 : 1];
    uint32 heads[words];
    // Of the segment across the boundary in front of each thread; where there is none, nothing.
    uint16 begins[threads], ends[threads];
    typename Near::Shared near;
    uint32 rounds;  // that have to be: a bit for each
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  int64 tile, begin;
  int count;         // elements of the tile
  int place;         // this thread's first element
  uint32 heads;      // of this thread's elements
  int first, last;   // heads of the tile; one behind the end and -1 without any
  bool has_changed;  // since shared memory has this thread's elements
  T keys[items];
  uint32 places[items];

  __device__ SegmentTileSort(const Params& params, Shared& shared, int64 tile)
      : params(params), shared(shared), tile(tile), begin(tile * tile_items) {
    const int64 left = params.num_items - begin;
    count = left < tile_items ? int(left) : tile_items;
    place = threadIdx.x * items;
    has_changed = false;
  }

  __device__ void load() {
    const SegmentHeads found{params.heads, params.bounds};
    for (int i = threadIdx.x; i < words; i += threads) {
      shared.heads[i] = 32 * i < count ? found.word(tile * words + i) : all_lanes;
    }
    if (threadIdx.x == 0) shared.rounds = 0;
    const Sources<T> source = advanced(sources_of<T>(params.keys), begin);
    T loaded[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      loaded[k] = T{};
      if (i < count) loaded[k] = load_element<T>(advanced(source, i));
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      assign(shared.keys[slot_of<items>(threadIdx.x + k * threads)], loaded[k]);
    }
  }

  // Takes this thread's elements, and finds the segments across the boundaries of threads.
  __device__ void look() {
    constexpr uint32 all = items == 32 ? all_lanes : (1u << items % 32) - 1;
    heads = shared.heads[place / 32] >> place % 32 & all;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      places[k] = place + k;
      assign(keys[k], shared.keys[slot_of<items>(place + k)]);
    }
    Near near{shared.near};
    const int own_first = place + (heads ? ptx::ffs(heads) - 1 : 0);
    near.find(heads != 0, own_first, place + 31 - ptx::clz(heads | 1), -1);
    // A segment that reaches beyond the tile is merged as far as the tile has it.
    const int end = heads ? own_first : near.behind < 0 ? tile_items : near.behind;
    const bool is_across = threadIdx.x > 0 && end > place;
    shared.begins[threadIdx.x] = uint16(near.before < 0 ? 0 : near.before);
    shared.ends[threadIdx.x] = uint16(is_across ? end : 0);
    // Boundary b belongs to the round that is the number of its lowest zeros.
    const uint32 across = ptx::ballot_sync(all_lanes, is_across);
    const int warp = threadIdx.x / warp_threads;
    if (threadIdx.x % warp_threads == 0 && across != 0) {
      uint32 rounds = (across & 0xaaaaaaaau ? 1 : 0) | (across & 0x44444444u ? 2 : 0) |
                      (across & 0x10101010u ? 4 : 0) | (across & 0x01000100u ? 8 : 0) |
                      (across & 0x00010000u ? 16 : 0);
      if (across & 1) rounds |= 32u << (ptx::ffs(uint32(warp)) - 1);
      ptx::atom_or_relaxed_cta(&shared.rounds, rounds);
    }
    first = near.first_of_all(tile_items);
    last = near.last_of_all(-1);
  }

  // Sorts this thread's elements, segment by segment.
  template <bool has_heads>
  __device__ void sort_own() {
#pragma unroll 1
    for (int round = 0; round < items; round += 2) {
#pragma unroll
      for (int phase = 0; phase < 2; ++phase) {
#pragma unroll
        for (int k = phase; k + 1 < items; k += 2) {
          const bool is_due = Order::before(keys[k + 1], keys[k]);
          exchange_if(is_due & !(has_heads && (heads >> (k + 1) & 1)), k, k + 1);
        }
      }
    }
  }

  __device__ void exchange_if(bool is_due, int i, int j) {
    T low, high;
    choose(low, is_due, keys[j], keys[i]);
    choose(high, is_due, keys[i], keys[j]);
    assign(keys[i], low);
    assign(keys[j], high);
    if constexpr (has_values<V>) {
      const uint32 place_i = places[i], place_j = places[j];
      places[i] = is_due ? place_j : place_i;
      places[j] = is_due ? place_i : place_j;
    }
  }

  __device__ void put_own() {
    if (!has_changed) return;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int slot = slot_of<items>(place + k);
      assign(shared.keys[slot], keys[k]);
      if constexpr (has_values<V>) shared.places[slot] = uint16(places[k]);
    }
    has_changed = false;
  }

  // Merges what the segment across the middle of this thread's group has of it on both sides.
  __device__ void merge_round(int round) {
    const int half = 1 << round;
    const int group = int(threadIdx.x) & ~(2 * half - 1), middle_thread = group + half;
    if (middle_thread >= threads) return;
    int end = shared.ends[middle_thread];
    if (end == 0) return;
    const int middle = middle_thread * items, most = (middle_thread + half) * items;
    int begin = shared.begins[middle_thread];
    if (begin < group * items) begin = group * items;
    if (end > most) end = most;
    const int from = place > begin ? place : begin;  // this thread's first that is merged
    if (from >= place + items || from >= end) return;
    const auto key_at = [&](int i) -> const T& { return shared.keys[slot_of<items>(i)]; };
    const int i = split_at(from - begin, middle - begin, end - middle, [&](int in_b, int in_a) {
      return Order::before(key_at(middle + in_b), key_at(begin + in_a));
    });
    const int a = begin + i, b = middle + (from - begin - i);
    if (place == from && place + items <= end) {
      take_merged<true>(a, middle, b, end, from);
    } else {
      take_merged<false>(a, middle, b, end, from);
    }
    has_changed = true;
  }

  // Behind the last of a run its next is read, and never taken.
  template <bool is_whole>
  __device__ void take_merged(int a, int end_a, int b, int end_b, int from) {
    T from_a, from_b;
    assign(from_a, shared.keys[slot_of<items>(a)]);
    assign(from_b, shared.keys[slot_of<items>(b)]);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (!is_whole && (place + k < from || place + k >= end_b)) continue;
      const bool takes_b = (b < end_b) & ((a >= end_a) | Order::before(from_b, from_a));
      choose(keys[k], takes_b, from_b, from_a);
      if constexpr (has_values<V>) places[k] = shared.places[slot_of<items>(takes_b ? b : a)];
      a += !takes_b;
      b += takes_b;
      T key;
      assign(key, shared.keys[slot_of<items>(takes_b ? b : a)]);
      choose(from_b, takes_b, key, from_b);
      choose(from_a, takes_b, from_a, key);
    }
  }

  // Whether elements before the first head, or from the last one on, begin their rounds of merges
  // beside home.
  __device__ bool goes_aside(int64 boundary) const {
    constexpr int parts = tile_items / Policy::merge_items;
    if (params.spans == nullptr || boundary > params.num_tiles) return false;
    const int64 tiles = (params.num_items + Policy::merge_items - 1) / Policy::merge_items;
    const int64 at = boundary * parts;
    return at <= tiles && rounds_of<tile_items>(params.spans[at]) % 2 == 1;
  }

  __device__ void write() const {
    const bool head_aside = goes_aside(tile), tail_aside = goes_aside(tile + 1);
    const Targets<T> home = advanced(targets_of<T>(params.home.keys), begin);
    const Targets<T> side = advanced(targets_of<T>(params.side.keys), begin);
    const auto is_aside = [&](int i) {
      return (i < first && head_aside) || (i >= last && tail_aside);
    };
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (i < count) {
        store_element(advanced(either(is_aside(i), side, home), i), shared.keys[slot_of<items>(i)]);
      }
    }
    if constexpr (has_values<V>) {
      const bool are_given = params.values[0] != nullptr;
      const Sources<V> source = advanced(sources_of<V>(params.values), are_given ? begin : 0);
      V values[items];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = threadIdx.x + k * threads;
        if (i < count) {
          const int from = shared.places[slot_of<items>(i)];
          values[k] =
              are_given ? load_element<V>(advanced(source, from)) : position_value<V>(begin + from);
        }
      }
      ptx::syncthreads();  // all are read before any is written, which may be in place
      const Targets<V> to = advanced(targets_of<V>(params.home.values), begin);
      const Targets<V> beside = advanced(targets_of<V>(params.side.values), begin);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = threadIdx.x + k * threads;
        if (i < count) store_element(advanced(either(is_aside(i), beside, to), i), values[k]);
      }
    }
  }

  __device__ void run() {
    load();
    ptx::syncthreads();
    look();
    if (ptx::any_sync(all_lanes, heads >> 1 != 0)) {
      sort_own<true>();
    } else {
      sort_own<false>();
    }
    has_changed = true;
    ptx::syncthreads();  // all have taken theirs, and told of boundaries
#pragma unroll 1
    for (uint32 rounds = shared.rounds; rounds != 0; rounds &= rounds - 1) {
      put_own();
      ptx::syncthreads();
      merge_round(ptx::ffs(rounds) - 1);
      ptx::syncthreads();
    }
    put_own();
    ptx::syncthreads();
    write();
  }
};

template <class Policy, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) segment_tiles_kernel(
    const __grid_constant__ SegmentTilesParams<num_leaves<T>, num_leaves<V>> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Work = SegmentTileSort<Policy, Order, T, V>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared, blockIdx.x).run();
}

}  // namespace gpualgo

#endif
