// Where elements belong in a sorted array: output[i] = the first place whose element does not come
// before query i, or (is_right) that query i comes before.
//
// Algorithm  A block keeps a sample of the sorted array in shared memory: the top of a search tree,
//            level by level (the layout of Eytzinger, after Khuong and Morin 2017,
//            doi:10.1145/3053370), where the nodes of a level are neighbours: threads that have
//            parted meet in few banks, as they would not in sorted order. Of float32 it holds ints
//            in the same order (rank_of). A query goes down the tree, and then by halves through
//            the stretch of the sorted array between two nodes; where queries are many, through
//            samples of it (samples.cuh) first, each some times as dense as the one before, of
//            which it loads a sector in each (after Rao and Ross 2000, doi:10.1145/342009.335449).
//            All have as many steps for every query and no branch, and a thread takes `items`
//            queries down at once, so that their loads are under way together.
// Windows    The samples' kernel also finds a window of each tile of queries: the part of the array
//            from where the tile's first query belongs to where its last one does. If it has room
//            in shared memory, the block loads it there in place of the tree. A place between two
//            elements of the window is right, in whatever order the queries are. If one of a
//            tile's queries finds none, the tile goes down the tree.
// Bytes      a query and its result each once; of the sorted array a sector of 32 bytes for each
//            step below the tree, or below the last sample and one for each of the samples, which
//            neighbouring queries share if they are close; of windows each byte once. Launches:
//            one, or with samples two; temporary storage: that of the samples and 16 bytes for each
//            tile.
// Answer     in_either: the array may be in the opposite order. Where its last element comes before
//            its first, or that is NaN, it is read from the end, and a place is how many are left
//            behind it. among, not_among: whether the array has an element that equals the query,
//            or has none; NaN equals nothing.
// In place   safe where output and queries are the same elements: a thread loads before it stores,
//            and windows are found before.
// Operator   a strict weak order, asked of elements of the input alone. Results do not depend on
//            the cut where the array is in that order; where it is not they are places within it
//            or its length all the same, and nothing is read out of bounds.
#ifndef GPUALGO_SEARCHSORTED_KERNEL_CUH
#define GPUALGO_SEARCHSORTED_KERNEL_CUH

#include "parts/convert.cuh"
#include "parts/layout.cuh"
#include "parts/order.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

constexpr int most_samples = 16;

enum class Answer { place, in_either, among, not_among };

template <int block_threads_, int items_, int levels_, int min_blocks_, int shared_bytes_,
          int node_bits_, bool in_packs_, Answer answer_>
struct SearchPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;            // queries per thread
  static constexpr int levels = levels_;          // of the tree, at most
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr int node_bits = node_bits_;  // of samples: log2 of a node's elements; 0: none
  static constexpr bool in_packs = in_packs_;   // the sorted array lies as its samples do
  static constexpr Answer answer = answer_;
  static constexpr bool may_fall = answer_ == Answer::in_either;  // then there are no samples
  static_assert(!may_fall || node_bits == 0);
};

// Of both kernels. Places: those of the output and of the queries' leaves.
template <int leaves, class Places>
struct SearchParams {
  const unsigned char* sorted[leaves];
  const unsigned char* queries[leaves];
  unsigned char* output;
  unsigned char* samples;
  unsigned char* windows;  // of each tile
  int64 num_sorted, num_queries, num_tiles;
  int64 steps[leaves];  // bytes from an element of the sorted array to the next
  int64 num_levels;     // of the tree
  int64 stretch_bits;   // between two nodes of the tree lie so many bits' worth of elements
  int64 num_samples;
  int64 sample_begins[most_samples + 2];  // of each, by its number, in elements; then their end
  int64 window_blocks;                    // of the samples' kernel, for windows; 0: there are none
  Places places;
};

// A: the sorted array's elements; V: the queries; T: what both become before they are compared.
template <class Policy, class Order, bool is_right, class A, class V, class T, class Index,
          class Places>
struct Search {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int leaves = num_leaves<A>;
  static constexpr int node_bits = Policy::node_bits, node_items = 1 << node_bits;
  using Params = SearchParams<leaves, Places>;
  using Node = Pack<T, node_items>;
  static constexpr bool is_ranked = has_ranks<Order, T>;
  using InTree = Either<is_ranked, int32, T>;
  static constexpr bool is_even = is_same<Places, EvenLayout<1 + leaves>>;

  struct Shared {
    alignas(16) InTree nodes[1 << Policy::levels];  // the first one is not used
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  bool falls = false;

  // The part of the sorted array that a tile's queries are looked for in.
  struct Window {
    int64 begin;
    int size;  // 0: it has no room in shared memory
    int is_done;
  };
  enum class Done { none, some, all };  // of a block's tiles, in windows

  // The queries of a thread, and where they are on their way.
  struct Queries {
    T values[items];
    int64 places[items];
    int64 outputs[is_even ? 1 : items];  // offsets
    bool is_there[items];
  };

  // Element i, or the one that is i behind `begin`.
  __device__ static T element_at(const Params& params, int64 i) {
    return element_at(params, sources_of<A>(params.sorted), i);
  }

  template <class Place>
  __device__ static T element_at(const Params& params, const Sources<A>& begin, Place i) {
    return convert<T>(load_element<A>(
        moved(begin, [&](auto leaf) { return i * step_of<decltype(leaf)::value>(params); })));
  }

  template <int leaf>
  __device__ static int64 step_of(const Params& params) {
    return Policy::in_packs ? sizeof(T) : params.steps[leaf];
  }

  __device__ T sorted_at(int64 i) const {
    return element_at(params, Policy::may_fall && falls ? params.num_sorted - 1 - i : i);
  }

  // Whether a query's place is behind an element.
  __device__ static bool is_behind(const T& query, const T& element) {
    if constexpr (is_right) {
      return !Order::before(query, element);
    } else {
      return Order::before(element, query);
    }
  }

  // The same for what is in the tree.
  __device__ static bool goes_behind(const InTree& query, const InTree& node) {
    if constexpr (is_ranked) {
      return is_right ? query >= node : query > node;
    } else {
      return is_behind(query, node);
    }
  }

  __device__ static decltype(auto) in_tree(const T& element) {
    if constexpr (is_ranked) {
      return rank_of<Order>(element);
    } else {
      return (element);
    }
  }

  __device__ void fill() {
    const int levels = int(params.num_levels), bits = int(params.stretch_bits);
    const int64 num_nodes = params.num_sorted >> bits;
    int level = 0;
    for (int node = 1 + threadIdx.x; node < 1 << levels; node += threads) {
      while (node >> level > 1) ++level;
      const int below = levels - level;  // levels from the node's on
      const int64 in_order = ((node - (1 << level)) << below) + (1 << (below - 1)) - 1;
      // What is behind the last node is as that one is: queries behind it go on to the end.
      const int64 i = in_order < num_nodes ? in_order : num_nodes - 1;
      if constexpr (node_bits > 0) {
        shared.nodes[node] = in_tree(samples()[params.sample_begins[params.num_samples] + i]);
      } else {
        assign(shared.nodes[node], in_tree(sorted_at(((i + 1) << bits) - 1)));
      }
    }
  }

  // A tile's queries of a thread are `threads` apart, and where they lie in one dimension, so are
  // their offsets, which then take an addition each.
  __device__ void load(Queries& own, int64 tile) const {
    const auto all = sources_of<V>(params.queries);
    const int64 first = tile * (items * threads) + threadIdx.x;
    const int64 left = params.num_queries - first;
    const int few = left < items * threads ? int(left) : items * threads;
    int64 offsets[1 + leaves], steps[1 + leaves];
    if constexpr (is_even) {
      params.places.offsets(first, offsets);
      params.places.offsets(threads, steps);
      own.outputs[0] = offsets[0];
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int64 i = first + k * threads;
      own.is_there[k] = k * threads < few;
      if (!own.is_there[k]) continue;
      if constexpr (!is_even) {
        params.places.offsets(i, offsets);
        own.outputs[k] = offsets[0];
      }
      own.values[k] = convert<T>(load_element<V>(moved(all, [&](auto leaf) {
        const int64 offset = offsets[1 + decltype(leaf)::value];
        return is_even ? offset + k * steps[1 + decltype(leaf)::value] : offset;
      })));
    }
  }

  // Goes down the tree: places are then those of stretches.
  __device__ void descend(Queries& own) const {
    if constexpr (is_ranked) {
      int32 ranks[items];
#pragma unroll
      for (int k = 0; k < items; ++k) ranks[k] = own.is_there[k] ? in_tree(own.values[k]) : 0;
      go_down(own, ranks);
    } else {
      go_down(own, own.values);
    }
  }

  // Nodes are known by their bytes: of the numbers of a node's children the first is twice its own.
  __device__ void go_down(Queries& own, const InTree (&queries)[items]) const {
    constexpr int size = sizeof(InTree);
    const int levels = int(params.num_levels);
    const auto* nodes = reinterpret_cast<const unsigned char*>(shared.nodes);
    uint32 at[items];
#pragma unroll
    for (int k = 0; k < items; ++k) at[k] = size;
#pragma unroll 1
    for (int level = 0; level < levels; ++level) {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (!is_ranked && !own.is_there[k]) continue;  // nothing to compare
        const auto& node = *reinterpret_cast<const InTree*>(nodes + at[k]);
        at[k] *= 2;
        if (goes_behind(queries[k], node)) at[k] += size;
      }
    }
    const int num_nodes = int(params.num_sorted >> params.stretch_bits);  // fewer than 2^levels
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const bool has_gone = is_ranked || own.is_there[k];
      const int place = has_gone ? int(at[k] / size) - (1 << levels) : 0;
      own.places[k] = place < num_nodes ? place : num_nodes;
    }
  }

  __device__ const T* samples() const { return reinterpret_cast<const T*>(params.samples); }

  // Goes through samples: places are then those of nodes of the sorted array.
  __device__ void follow(Queries& own) const {
#pragma unroll 1
    for (int number = int(params.num_samples) - 1; number > 0; --number) {
      const T* sample = samples() + params.sample_begins[number];
      const int64 length = params.num_sorted >> number * node_bits;
      Node nodes[items];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        own.places[k] <<= node_bits;
        if (own.is_there[k]) nodes[k] = load_pack<T, node_items>(sample + own.places[k]);
      }
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (own.is_there[k])
          own.places[k] += num_behind(own.values[k], nodes[k], length, own.places[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < items; ++k) own.places[k] <<= node_bits;
  }

  // Before how many elements of a node, which begins at `begin` of so many, a query's place is not:
  // less than all.
  __device__ static int num_behind(const T& query, Node node, int64 length, int64 begin) {
    const int limit = length - begin < node_items ? int(length - begin) : node_items;
    int behind = 0;
#pragma unroll
    for (int half = node_items / 2; half > 0; half /= 2) {
      const bool takes = behind + half <= limit && is_behind(query, node.items[half - 1]);
      if (takes) behind += half;
#pragma unroll
      for (int i = 0; i + 1 < half; ++i) {
        node.items[i] = takes ? node.items[i + half] : node.items[i];
      }
    }
    return behind;
  }

  // Finds places in nodes of the sorted array itself, but for the last one, which may end early.
  __device__ void search_nodes(Queries& own) const {
    Node nodes[items];
    bool is_whole[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      is_whole[k] = own.is_there[k] && own.places[k] + node_items <= params.num_sorted;
      const auto* node = reinterpret_cast<const T*>(params.sorted[0]) + own.places[k];
      if (is_whole[k]) nodes[k] = load_pack<T, node_items>(node);
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (is_whole[k]) own.places[k] += num_behind(own.values[k], nodes[k], node_items, 0);
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (is_whole[k] || !own.is_there[k]) continue;
      const int64 begin = own.places[k];
      while (own.places[k] < params.num_sorted && own.places[k] < begin + node_items &&
             is_behind(own.values[k], sorted_at(own.places[k]))) {
        ++own.places[k];
      }
    }
  }

  // Goes by halves through stretches of so many bits' worth of elements.
  __device__ void narrow_down(Queries& own, int64 bits) const {
#pragma unroll 1
    for (int64 half = (int64(1) << bits) >> 1; half > 0; half >>= 1) {
      T probes[items];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const bool is_element = own.is_there[k] && own.places[k] + half <= params.num_sorted;
        if (is_element) probes[k] = sorted_at(own.places[k] + half - 1);
      }
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const bool is_element = own.is_there[k] && own.places[k] + half <= params.num_sorted;
        if (is_element && is_behind(own.values[k], probes[k])) own.places[k] += half;
      }
    }
  }

  __device__ Window* windows() const { return reinterpret_cast<Window*>(params.windows); }

  // Whether `is` holds for all windows of the block's tiles.
  template <class Is>
  __device__ bool all_windows(Is is) const {
    const int64 step = gridDim.x;
    bool all = true;
#pragma unroll 1
    for (int64 i = blockIdx.x + threadIdx.x * step; i < params.num_tiles; i += threads * step) {
      all &= is(windows()[i]);
    }
    return ptx::syncthreads_and(all);
  }

  // Finds the places of tiles' queries in windows, where shared memory has room for these.
  __device__ Done search_windows() {
    if (all_windows([](const Window& window) { return window.size == 0; })) return Done::none;
    Window next = windows()[blockIdx.x];
#pragma unroll 1
    for (int64 tile = blockIdx.x; tile < params.num_tiles; tile += gridDim.x) {
      const Window window = next;
      if (tile + gridDim.x < params.num_tiles) next = windows()[tile + gridDim.x];
      if (window.size == 0) continue;
      Queries own;
      load(own, tile);
      load_window(window);
      ptx::syncthreads();
      if (!ptx::syncthreads_and(find_in_window(own, window))) continue;
      store(own);
      if (threadIdx.x == 0) windows()[tile].is_done = 1;
    }
    ptx::syncthreads();  // until all know what is done
    const bool all = all_windows([](const Window& window) { return window.is_done != 0; });
    return all ? Done::all : Done::some;
  }

  __device__ void load_window(const Window& window) {
    constexpr int at_once = items + 1;  // as many elements as queries, and some more
    Sources<A> begin = sources_of<A>(params.sorted);
    begin.at[0] = ptx::opaque_global(begin.at[0] + window.begin * step_of<0>(params));
    const int last = window.size - 1;
#pragma unroll 1
    for (int first = threadIdx.x; first <= last; first += at_once * threads) {
      T elements[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int i = first + k * threads;
        elements[k] = element_at(params, begin, i < last ? i : last);
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int i = first + k * threads;
        if (i <= last) assign(shared.nodes[i], in_tree(elements[k]));
      }
    }
  }

  // Returns whether each query belongs between two elements of the window, or at an end of the
  // sorted array: then its place is right in whatever order the queries are.
  __device__ bool find_in_window(Queries& own, const Window& window) const {
    InTree queries[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      assign(queries[k], shared.nodes[0]);
      if (own.is_there[k]) assign(queries[k], in_tree(arrived(own.values[k])));
    }
    uint32 found[items];
    halve_window(queries, window.size, found);
    const uint32 least = window.begin > 0 ? 1 : 0;
    const uint32 most = window.size - (window.begin + window.size < params.num_sorted ? 1 : 0);
    bool are_found = true;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      own.places[k] = window.begin + found[k];
      are_found &= !own.is_there[k] || found[k] - least <= most - least;
    }
    return are_found;
  }

  // A query that is turned into its rank here, not where that would wait for its load.
  __device__ static T arrived(const T& query) {
    if constexpr (is_ranked) {
      return bit_cast<T>(ptx::computed_now(bit_cast<uint32>(query)));
    } else {
      return query;
    }
  }

  // The first step leaves one less than a power of two, by two parts of the window that may
  // overlap. As in go_down, elements are known by their bytes.
  __device__ void halve_window(const InTree (&queries)[items], int window_size,
                               uint32 (&found)[items]) const {
    constexpr int size = sizeof(InTree);
    const auto* nodes = reinterpret_cast<const unsigned char*>(shared.nodes);
    const int power = 1 << (31 - ptx::clz(window_size));
    const uint32 second = (window_size - power + 1) * size;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      found[k] = goes_behind(queries[k], shared.nodes[power - 1]) ? second : 0;
    }
#pragma unroll
    for (int half = 1 << Policy::levels >> 1; half > 0; half /= 2) {
      if (half >= power) continue;
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const auto* at = nodes + (half - 1) * size + found[k];
        if (goes_behind(queries[k], *reinterpret_cast<const InTree*>(at))) found[k] += half * size;
      }
    }
#pragma unroll
    for (int k = 0; k < items; ++k) found[k] /= size;
  }

  // For the samples' kernel. A window begins where the tile's first query belongs and ends where
  // its last one does, or the other way around, and has one more element at each end.
  __device__ static void find_windows(const Params& params, int64 first, int64 step) {
#pragma unroll 1
    for (int64 tile = first; tile < params.num_tiles; tile += step) {
      const int64 begin = tile * (items * threads), end = begin + items * threads;
      const int64 last = (end < params.num_queries ? end : params.num_queries) - 1;
      const T queries[2] = {query_at(params, begin), query_at(params, last)};
      int64 places[2] = {};
#pragma unroll 1
      for (int64 length = params.num_sorted; length > 0;) {
        const int64 half = (length + 1) >> 1;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          if (is_behind(queries[k], element_at(params, places[k] + half - 1))) places[k] += half;
        }
        length -= half;
      }
      const bool rise = places[0] <= places[1];
      const int64 low = rise ? places[0] : places[1], high = rise ? places[1] : places[0];
      Window window{low > 0 ? low - 1 : 0};
      const int64 size = (high < params.num_sorted ? high + 1 : high) - window.begin;
      window.size = size <= 1 << Policy::levels ? int(size) : 0;
      reinterpret_cast<Window*>(params.windows)[tile] = window;
    }
  }

  __device__ static T query_at(const Params& params, int64 i) {
    const auto all = sources_of<V>(params.queries);
    int64 offsets[1 + leaves];
    params.places.offsets(i, offsets);
    return convert<T>(
        load_element<V>(moved(all, [&](auto leaf) { return offsets[1 + decltype(leaf)::value]; })));
  }

  // Whether a query equals the element at its place, before which all are less.
  __device__ bool is_among(const T& query, int64 place) const {
    const auto number = Order::number(query);
    return number == number && place < params.num_sorted && !Order::before(query, sorted_at(place));
  }

  __device__ void store(const Queries& own) const {
    int64 steps[1 + leaves];
    if constexpr (is_even) params.places.offsets(threads, steps);
    unsigned char* first = params.output;
    if constexpr (is_even) first = ptx::opaque_global(first + own.outputs[0]);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (!own.is_there[k]) continue;
      unsigned char* output = first + (is_even ? k * steps[0] : own.outputs[k]);
      int64 answer = own.places[k];
      if (Policy::may_fall && falls) answer = params.num_sorted - answer;
      if constexpr (Policy::answer == Answer::among || Policy::answer == Answer::not_among) {
        answer = is_among(own.values[k], answer) == (Policy::answer == Answer::among);
      }
      *reinterpret_cast<Index*>(output) = Index(answer);
    }
  }

  __device__ void run() {
    if constexpr (Policy::may_fall) {
      const T first = sorted_at(0);
      const auto number = Order::number(first);
      falls = Order::before(sorted_at(params.num_sorted - 1), first) || number != number;
    }
    auto done = Done::none;
    if constexpr (node_bits > 0) {
      if (params.window_blocks > 0) done = search_windows();
      if (done == Done::all) return;
    }
    fill();
    ptx::syncthreads();
    for (int64 tile = blockIdx.x; tile < params.num_tiles; tile += gridDim.x) {
      if constexpr (node_bits > 0) {
        if (done == Done::some && windows()[tile].is_done) continue;
        ptx::syncwarp();  // tells the compiler that no thread of a warp went on alone
      }
      Queries own;
      load(own, tile);
      descend(own);
      if constexpr (node_bits > 0) {
        follow(own);
        if constexpr (Policy::in_packs) {
          search_nodes(own);
        } else {
          narrow_down(own, node_bits);
        }
      } else {
        if (params.stretch_bits > 0) {
#pragma unroll
          for (int k = 0; k < items; ++k) own.places[k] <<= params.stretch_bits;
          narrow_down(own, params.stretch_bits);
        }
      }
      store(own);
    }
  }
};

template <class Policy, class Order, bool is_right, class A, class V, class T, class Index,
          class Places>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) searchsorted_kernel(
    const __grid_constant__ ParamsFor<Order, SearchParams<num_leaves<A>, Places>> params) {
  take_numbers<Order>(params);
  using Work = Search<Policy, Order, is_right, A, V, T, Index, Places>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work work{params, shared};
  work.run();
}

}  // namespace gpualgo

#endif
