// Samples of several numbers: their bins, and how blocks go through them.
//
// A sample is a record of one number or more, each in an array of its own (parts/leaves.cuh), or
// computed of what is in arrays; a weight, where each sample has its own, is in the last array. The
// bin of a sample is that of all its numbers, in C order.
#ifndef GPUALGO_HISTOGRAM_JOINT_CUH
#define GPUALGO_HISTOGRAM_JOINT_CUH

#include "histogram/bins.cuh"
#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "parts/ptx.cuh"

namespace gpualgo {

struct JointShared {
  uint32 is_last;
  alignas(16) uint32 words[4];  // the table's, then what the bins put there; more than 4
};

// --- bins -------------------------------------------------------------------------------------

namespace detail {

// Bins once a block has opened them: those that are no others stay where they are.
template <class B, bool is_copied>
struct Opened {
  const B* bins;
  __device__ const B& get() const { return *bins; }
};
template <class B>
struct Opened<B, true> {
  B bins;
  __device__ const B& get() const { return bins; }
};

template <class B>
inline constexpr bool is_copied =
    !is_same<decltype(static_cast<const B*>(nullptr)->open(nullptr)), const B&>;

template <class Each>
struct OpenedOf;
template <class... B>
struct OpenedOf<Tuple<B...>> {
  using type = Tuple<Opened<B, is_copied<B>>...>;
};

}  // namespace detail

// The bins of each number of a sample. Each: Tuple of kinds of bins.
template <class Each>
struct JointBins {
  static constexpr int dims = num_leaves<Each>;

  Each each;
  int64 num_bins[dims];
  int64 shared_words[dims];  // where each has its part of what a block keeps for bins

  struct Open {
    typename detail::OpenedOf<Each>::type each;
    const int64* num_bins;

    // The bins of samples; -1: none.
    template <class T, int items>
    __device__ void find(const Pack<T, items>& samples, int32 (&bins)[items]) const {
#pragma unroll
      for (int k = 0; k < items; ++k) bins[k] = 0;
      for_each_leaf<Each>([&](auto leaf) {
        constexpr int i = decltype(leaf)::value;
        Pack<Leaf<T, i>, items> numbers;
#pragma unroll
        for (int k = 0; k < items; ++k) numbers.items[k] = leaf_of<i>(samples.items[k]);
        const auto& own = leaf_of<i>(each).get();
        typename Leaf<Each, i>::Place places[items];
        own.locate(numbers, places);
#pragma unroll
        for (int k = 0; k < items; ++k) {
          const int32 bin = own.resolve(numbers.items[k], places[k]);
          const bool is_inside = bin >= 0 && bins[k] >= 0;
          bins[k] = is_inside ? bins[k] * int32(num_bins[i]) + bin : -1;
        }
      });
    }
  };

  // All threads call it, before a barrier.
  __device__ Open open(uint32* shared) const {
    Open opened;
    opened.num_bins = num_bins;
    for_each_leaf<Each>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using B = Leaf<Each, i>;
      if constexpr (detail::is_copied<B>) {
        leaf_of<i>(opened.each).bins = leaf_of<i>(each).open(shared + shared_words[i]);
      } else {
        leaf_of<i>(opened.each).bins = &leaf_of<i>(each);
      }
    });
    return opened;
  }
};

// --- samples ----------------------------------------------------------------------------------

// Of a row whose arrays have no gaps, or (a bit of `repeated`) one number for all samples.
template <bool is_aligned_, int repeated_>
struct FlatItems {
  static constexpr bool is_flat = true, is_aligned = is_aligned_;
  static constexpr int repeated = repeated_;
};

// Of a row of any strides.
template <int leaves>
struct StridedItems {
  static constexpr bool is_flat = false;
  Layout<leaves> items;
};

namespace detail {

// How many samples are loaded at once: a vector of the widest number, computed ones of two vectors.
template <class T>
__device__ constexpr int samples_at_once() {
  constexpr int widest = widest_leaf<T>;
  int items = widest < 2 ? 8 : vector_bytes / widest;
  if (is_computed<T>) {
    while (items > 1 && items * int(sizeof(Held<T>)) > 2 * vector_bytes) items /= 2;
  }
  return items;
}

}  // namespace detail

// The samples of rows: a row is a group of kept places, side by side.
template <int leaves, class Access>
struct JointRows {
  int64 num_items;   // samples of a kept place
  int64 first, end;  // kept places
  int64 channels;    // of a row, at most as many as a block has threads; flat: one
  Divisor blocks_per_row;
  Layout<leaves> kept;
  Access access;

  __device__ int row() const { return int(blocks_per_row.divide(blockIdx.x)); }
  __device__ int64 first_place() const { return first + row() * channels; }
  __device__ uint32 num_channels() const {
    const int64 left = end - first_place();
    return uint32(left < channels ? left : channels);
  }
  // Of those in a row, the kept place that this thread is for.
  __device__ uint32 channel() const {
    if constexpr (Access::is_flat) return 0;
    return threadIdx.x % uint32(channels);
  }

  // Calls visit(samples) with packs of this block's part of its row, and end_tile() after
  // each tile, together with all threads.
  template <class Policy, class T, class Visit, class EndTile>
  __device__ void walk(const unsigned char* const (&input)[leaves], Visit visit,
                       EndTile end_tile) const {
    const int part = int(blockIdx.x) - row() * int(blocks_per_row.value);
    const uint32 mine = channel();
    const bool is_active = mine < num_channels();
    const Sources<T> samples = open<T>(input, first_place() + (is_active ? mine : 0));
    if constexpr (Access::is_flat) {
      walk_flat<Policy, T>(samples, part, visit, end_tile);
    } else {
      walk_strided<Policy, T>(samples, part, is_active, visit, end_tile);
    }
  }

  // Where the samples of a kept place lie.
  template <class T>
  __device__ Sources<T> open(const unsigned char* const (&input)[leaves], int64 place) const {
    int64 offsets[leaves];
    kept.offsets(place, offsets);
    Sources<T> samples;
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      if constexpr (is_ordinal<Leaf<T, i>>) {
        samples.at[i] = input[i] + offsets[i];
      } else {
        samples.at[i] = ptx::assume_global(input[i]) + offsets[i];
      }
    });
    return samples;
  }

  // Where the weights of a kept place lie, if the last array is weights.
  __device__ const unsigned char* open_weights(const unsigned char* const (&input)[leaves],
                                               int64 place) const {
    int64 offsets[leaves];
    kept.offsets(place, offsets);
    return ptx::assume_global(input[leaves - 1]) + offsets[leaves - 1];
  }

  // Loads a sample of an opened place, and its weight.
  template <class T, class W>
  __device__ void load(const Sources<T>& samples, const unsigned char* weights, int64 index,
                       Held<T>& sample, W& weight) const {
    if constexpr (Access::is_flat) {
      constexpr int repeated = Access::repeated;
      assign(sample, load_element(advanced<repeated>(samples, index)));
      constexpr bool repeats = repeated >> num_leaves<T> & 1;
      weight = load_item<W>(weights + (repeats ? 0 : index * int64(sizeof(W))));
    } else {
      int64 offsets[leaves];
      access.items.offsets(index, offsets);
      assign(sample, load_element(moved(
                         samples, [&](auto leaf) { return offsets[decltype(leaf)::value]; })));
      weight = load_item<W>(weights + offsets[leaves - 1]);
    }
  }

  template <class Policy, class T, class Visit, class EndTile>
  __device__ void walk_flat(const Sources<T>& samples, int part, Visit visit,
                            EndTile end_tile) const {
    constexpr int repeated = Access::repeated;
    constexpr int items = detail::samples_at_once<T>();
    constexpr int loads = Policy::loads_in_flight;
    constexpr int64 tile = int64(Policy::block_threads) * items * loads;
    const int64 step = tile * blocks_per_row.value;
    for (int64 begin = part * tile; begin < num_items; begin += step) {
      if (begin + tile <= num_items) {
        Pack<Held<T>, items> packs[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i) {
          const int64 index = begin + (i * Policy::block_threads + int(threadIdx.x)) * items;
          packs[i] = load_leaves<T, items, Access::is_aligned, repeated>(
              advanced<repeated>(samples, index));
        }
#pragma unroll
        for (int i = 0; i < loads; ++i) visit(packs[i]);
      } else {
#pragma unroll 1
        for (int64 index = begin + threadIdx.x; index < num_items; index += Policy::block_threads) {
          const Pack<Held<T>, 1> one{{load_element(advanced<repeated>(samples, index))}};
          visit(one);
        }
      }
      end_tile();
    }
  }

  template <class Policy, class T, class Visit, class EndTile>
  __device__ void walk_strided(const Sources<T>& samples, int part, bool is_active, Visit visit,
                               EndTile end_tile) const {
    constexpr int loads = Policy::loads_in_flight;
    const uint32 width = uint32(Policy::block_threads) / uint32(channels);
    const uint32 lane = threadIdx.x / uint32(channels);
    const bool is_counting = is_active && lane < width;
    const int64 tile = int64(width) * loads;
    for (int64 begin = part * tile; begin < num_items; begin += tile * blocks_per_row.value) {
      Pack<Held<T>, 1> packs[loads];
#pragma unroll
      for (int i = 0; i < loads; ++i) {
        const int64 index = begin + i * width + lane;
        if (!is_counting || index >= num_items) continue;
        int64 offsets[leaves];
        access.items.offsets(index, offsets);
        packs[i].items[0] =
            load_element(moved(samples, [&](auto leaf) { return offsets[decltype(leaf)::value]; }));
      }
#pragma unroll
      for (int i = 0; i < loads; ++i) {
        if (is_counting && begin + i * width + lane < num_items) visit(packs[i]);
      }
      end_tile();
    }
  }
};

}  // namespace gpualgo

#endif
