// Sorting what each tile has of each segment; stable.
//
// Algorithm  A thread sorts its neighbours in registers: by odd-even transposition, which changes
//            places of neighbours alone, and none across the begin of a segment; where there is no
//            such place, and equal keys are the same bits, by the network of Batcher (1968,
//            doi:10.1145/1468075.1468121). Then rounds of merges in shared memory: in round r the
//            threads that have a part of a segment, counted from its first one, join groups of 2^r
//            to groups of 2^(r+1), each taking as many elements as it has, from where "merge path"
//            says (Odeh, Green, Mwassi, Shmueli and Birk 2012, doi:10.1109/IPDPSW.2012.202). So the
//            rounds are as many as the longest segment of the tile needs. (Merges across heads of
//            segments: Baxter, "Modern GPU", 2013, moderngpu.github.io/segsort.html.)
// Bytes      2 (k + v) per key of k bytes with values of v, and 1/8; launches: one. Values are
//            fetched when the order is known.
// In place   safe: a tile is read whole before any of it is written.
#ifndef GPUALGO_SEGMENTED_SORT_TILES_CUH
#define GPUALGO_SEGMENTED_SORT_TILES_CUH

#include "merge_sort/order.cuh"
#include "segmented_sort/plain.cuh"
#include "segmented_sort/registers.cuh"
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
struct SegmentTilesParams {
  const unsigned char* keys[key_leaves];
  const unsigned char* values[value_leaves];     // null: positions are wanted
  SegmentBuffer<key_leaves, value_leaves> home;  // where an even number of rounds ends
  SegmentBuffer<key_leaves, value_leaves> side;
  const uint32* heads;
  const int64* bounds;
  const SegmentSpan* spans;  // null: there is one tile
  SegmentCounts* counts;
  int64 num_items, num_tiles;
};

template <class Policy, class Order, class T, class V>
struct SegmentTileSort {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int tile_items = Policy::tile_items;
  static constexpr int words = tile_items / warp_threads;
  static constexpr int slots = slot_of<items>(tile_items + items) + 1;  // what is read
  static constexpr int own_slots = items + (items % 2 == 0);            // of a thread
  static_assert(items <= 32 && (items & (items - 1)) == 0 && tile_items <= 1 << 15);
  using Params = SegmentTilesParams<num_leaves<T>, num_leaves<V>>;
  using Near = Nearest<int, threads>;

  struct Shared {
    alignas(16) T keys[slots];
    uint16 places[has_values<V> ? slots : 1];
    uint32 heads[words];
    typename Near::Shared near;
    uint32 threads_of_one;  // of the longest segment in the tile, less one, as bits joined
    uint32 has_odd;         // floats, of which order by plain numbers knows nothing
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  // Two neighbouring runs that become one: from a on, and from the middle on.
  struct Pair {
    int a, middle, end;
    bool is_due;
  };
  // How far a thread is: behind the next of the first run, whose end is one before `end_a`, and
  // together with the second run's at first; the next of each.
  struct Walk {
    int a, end_a, both, end_b;  // both: less the number of this thread's element
    T from_a, from_b;
  };

  const Params& params;
  Shared& shared;
  int64 tile, begin;
  int count;         // elements of the tile
  int place;         // this thread's first element
  uint32 heads;      // of this thread's elements
  int first, last;   // heads of the tile; one behind the end and -1 without any
  int x_begin;       // of the segment that this thread's first element goes on with, and
  int x_end;         // where it ends; the thread's begin if it does not
  int y_begin;       // of the one that goes on behind this thread and begins in it, and
  int y_end;         // where that ends; the thread's end if there is none
  bool has_changed;  // since shared memory has this thread's elements
  T keys[items];
  uint32 places[items];

  __device__ SegmentTileSort(const Params& params, Shared& shared, int64 tile)
      : params(params), shared(shared), tile(tile), begin(tile * tile_items) {
    const int64 left = params.num_items - begin;
    count = left < tile_items ? int(left) : tile_items;
    place = threadIdx.x * items;
    has_changed = true;
  }

  // Where shared memory has the k-th of the elements that threads take in turn; of this thread's.
  __device__ static int slot_in_turn(int k) {
    if constexpr (threads % items == 0) {
      return slot_of<items>(threadIdx.x) + k * (threads / items * own_slots);
    } else {
      return slot_of<items>(threadIdx.x + k * threads);
    }
  }
  __device__ static int own_slot(int k) { return int(threadIdx.x) * own_slots + k; }
  __device__ static int thread_of(int i) { return int(uint32(i) / items); }

  __device__ void load() {
    const SegmentHeads found{params.heads, params.bounds};
#pragma unroll 1
    for (int i = threadIdx.x; i < words; i += threads) {
      shared.heads[i] = 32 * i < count ? found.word(tile * words + i) : all_lanes;
    }
    if (threadIdx.x == 0) shared.threads_of_one = shared.has_odd = 0;
    if (count == tile_items) {
      load_keys<true>();
    } else {
      load_keys<false>();
    }
  }
  template <bool is_whole>
  __device__ void load_keys() {
    const Sources<T> source = advanced(sources_of<T>(params.keys), begin + threadIdx.x);
    const int left = count - int(threadIdx.x);
    T loaded[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      loaded[k] = T{};
      if (is_whole || k * threads < left)
        loaded[k] = load_element<T>(advanced(source, k * threads));
    }
#pragma unroll
    for (int k = 0; k < items; ++k) assign(shared.keys[slot_in_turn(k)], loaded[k]);
  }

  // Takes this thread's elements, and finds which segments go on from thread to thread.
  __device__ void look() {
    constexpr uint32 all = items == 32 ? all_lanes : (1u << items % 32) - 1;
    heads = shared.heads[place / 32] >> place % 32 & all;
    bool has_odd = false;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      places[k] = place + k;
      assign(keys[k], shared.keys[own_slot(k)]);
      if constexpr (is_float<T>) has_odd = is_odd<!has_values<V>>(keys[k]) || has_odd;
    }
    Near near{shared.near};
    const int own_first = place + (heads ? ptx::ffs(heads) - 1 : 0);
    const int own_last = place + 31 - ptx::clz(heads | 1);
    near.find(heads != 0, own_first, own_last, -1);
    // Beyond the tile a segment is merged as far as the tile has it.
    const int behind = near.behind < 0 ? tile_items : near.behind;
    x_begin = near.before < 0 ? 0 : near.before;
    x_end = heads ? own_first : behind;
    y_begin = heads ? own_last : place + items;
    y_end = heads ? behind : place + items;
    const int before = x_end > place ? int(threadIdx.x) - thread_of(x_begin) : 0;
    const uint32 bits = before == 0 ? 0 : all_lanes >> ptx::clz(uint32(before));
    const uint32 odd = ptx::ballot_sync(all_lanes, has_odd);
    uint32 joined = bits;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) joined |= shuffle_xor(joined, delta);
    if (threadIdx.x % warp_threads == 0) {
      if (joined) ptx::atom_or_relaxed_cta(&shared.threads_of_one, joined);
      if (odd) ptx::atom_or_relaxed_cta(&shared.has_odd, 1u);
    }
    first = near.first_of_all(tile_items);
    last = near.last_of_all(-1);
  }

  __device__ void put_own() {
    if (!has_changed) return;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      assign(shared.keys[own_slot(k)], keys[k]);
      if constexpr (has_values<V>) shared.places[own_slot(k)] = uint16(places[k]);
    }
    has_changed = false;
  }

  // The runs of a segment from `begin` to `end` that its threads' groups of `half` have, in which
  // this thread is of the number `member`.
  __device__ static Pair pair_of(int begin, int end, int member, int half) {
    const int group = thread_of(begin) + (member & ~(2 * half - 1));
    Pair pair;
    pair.a = group * items < begin ? begin : group * items;
    pair.middle = (group + half) * items;
    pair.end = (group + 2 * half) * items < end ? (group + 2 * half) * items : end;
    pair.is_due = pair.middle < end;
    return pair;
  }
  __device__ const T& key_at(int i) const { return shared.keys[slot_of<items>(i)]; }

  // Sets out with this thread's k-th.
  __device__ void set_out(Walk& walk, int k, int a, int end_a, int b, int end_b) const {
    walk.a = a + 1;
    walk.end_a = end_a + 1;
    walk.both = a + b + 2 - k;
    walk.end_b = end_b + 1;
    assign(walk.from_a, key_at(a));
    assign(walk.from_b, key_at(b));
  }

  // Takes the k-th of this thread, if it is due. Behind the last of a run others are read, and
  // never taken.
  template <class By>
  __device__ void step(Walk& walk, int k, bool is_due) {
    const int b = walk.both + k - walk.a;
    const bool takes_b =
        (b < walk.end_b) & ((walk.a >= walk.end_a) | By::before(walk.from_b, walk.from_a));
    const int next = takes_b ? b : walk.a;
    T taken;
    choose(taken, takes_b, walk.from_b, walk.from_a);
    choose(keys[k], is_due, taken, keys[k]);
    if constexpr (has_values<V>) {
      if (is_due) places[k] = shared.places[slot_of<items>(next - 1)];
    }
    if (!takes_b) ++walk.a;
    T key;
    assign(key, key_at(next));
    choose(walk.from_b, takes_b, key, walk.from_b);
    choose(walk.from_a, takes_b, walk.from_a, key);
  }

  // Merges this thread's part of the two segments that it shares with others.
  template <class By>
  __device__ void merge_round(int round) {
    const int half = 1 << round, thread = threadIdx.x;
    Pair x{}, y{};
    if (x_end > place) x = pair_of(x_begin, x_end, thread - thread_of(x_begin), half);
    if (y_end > place + items) y = pair_of(y_begin, y_end, 0, half);
    has_changed = x.is_due || y.is_due;
    if (!ptx::any_sync(all_lanes, has_changed)) return;
    Walk walk{};
    if (x.is_due) {
      const int from = place - x.a;
      const int i = split_at(from, x.middle - x.a, x.end - x.middle, [&](int in_b, int in_a) {
        return By::before(key_at(x.middle + in_b), key_at(x.a + in_a));
      });
      set_out(walk, 0, x.a + i, x.middle, x.middle + from - i, x.end);
    }
    if (ptx::all_sync(all_lanes, !has_changed || (x.is_due && x_end >= place + items))) {
      if (!has_changed) return;
#pragma unroll
      for (int k = 0; k < items; ++k) step<By>(walk, k, true);
      return;
    }
    const int in_x = x.is_due ? x_end - place : 0;
    const int in_y = y.is_due ? y_begin - place : items;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (ptx::any_sync(all_lanes, k == in_y)) {
        if (k == in_y) set_out(walk, k, y.a, y.middle, y.middle, y.end);
      }
      step<By>(walk, k, (k < in_x) | (k >= in_y));
    }
  }

  template <class By, bool is_alike>
  __device__ void sort() {
    if (ptx::any_sync(all_lanes, heads >> 1 != 0)) {
      sort_neighbours<By, true, has_values<V>>(keys, places, heads);
    } else if constexpr (is_alike) {
      sort_alike<By>(keys);
    } else {
      sort_neighbours<By, false, has_values<V>>(keys, places, 0);
    }
    const int rounds = ptx::popc(shared.threads_of_one);
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      put_own();
      ptx::syncthreads();
      merge_round<By>(round);
      ptx::syncthreads();
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
    if (head_aside || tail_aside) {
      write_to<false>(
          [&](int i) { return (i < first && head_aside) || (i >= last && tail_aside); });
    } else if (count < tile_items) {
      write_to<false>([](int) { return false; });
    } else {
      write_to<true>([](int) { return false; });
    }
  }
  template <bool is_whole, class IsAside>
  __device__ void write_to(IsAside is_aside) const {
    const int thread = threadIdx.x, left = count - thread;
    const Targets<T> home = advanced(targets_of<T>(params.home.keys), begin + thread);
    const Targets<T> side = advanced(targets_of<T>(params.side.keys), begin + thread);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads;
      if (!is_whole && i >= left) continue;
      store_element(advanced(either(is_aside(thread + i), side, home), i),
                    shared.keys[slot_in_turn(k)]);
    }
    if constexpr (has_values<V>) {
      const bool are_given = params.values[0] != nullptr;
      const Sources<V> source = advanced(sources_of<V>(params.values), are_given ? begin : 0);
      V values[items];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (!is_whole && k * threads >= left) continue;
        const int from = shared.places[slot_in_turn(k)];
        values[k] =
            are_given ? load_element<V>(advanced(source, from)) : position_value<V>(begin + from);
      }
      ptx::syncthreads();  // all are read before any is written, which may be in place
      const Targets<V> to = advanced(targets_of<V>(params.home.values), begin + thread);
      const Targets<V> beside = advanced(targets_of<V>(params.side.values), begin + thread);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = k * threads;
        if (!is_whole && i >= left) continue;
        store_element(advanced(either(is_aside(thread + i), beside, to), i), values[k]);
      }
    }
  }

  __device__ void run() {
    load();
    ptx::syncthreads();
    look();
    ptx::syncthreads();  // all have taken theirs, and told what they found
    if constexpr (is_record<T>) {
      sort<Order, false>();
    } else {
      using Plain = ByPlainNumber<(Order::ways & 1) != 0>;
      constexpr bool is_alike = !has_values<V>;
      if constexpr (is_float<T>) {
        if (shared.has_odd) {
          if (threadIdx.x == 0) ptx::atom_or_relaxed_gpu(&params.counts->has_odd, 1u);
          sort<Order, false>();
        } else {
          sort<Plain, is_alike>();
        }
      } else {
        sort<Plain, is_alike>();
      }
    }
    put_own();
    ptx::syncthreads();
    write();
  }
};

template <class Policy, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) segment_tiles_kernel(
    const __grid_constant__ SegmentTilesParams<num_leaves<T>, num_leaves<V>> params) {
  ptx::overlap_both<Policy::overlaps>();
  using Work = SegmentTileSort<Policy, Order, T, V>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared, blockIdx.x).run();
}

}  // namespace gpualgo

#endif
