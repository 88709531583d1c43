// Where the elements lie that a selection reads: without gaps, or in any strides.
#ifndef GPUALGO_SELECT_ITEMS_CUH
#define GPUALGO_SELECT_ITEMS_CUH

#include "parts/layout.cuh"
#include "parts/leaves.cuh"

namespace gpualgo {

// Where the first numbers of elements lie, those of a Part.
template <class Part, class T>
__device__ inline Sources<Part> first_of(const Sources<T>& input) {
  Sources<Part> result;
  for_each_leaf<Part>([&](auto leaf) { result.at[leaf.value] = input.at[leaf.value]; });
  return result;
}

// Without gaps. in_packs: what a lane loads at once lies at a multiple of its size.
template <bool in_packs>
struct DenseItems {
  static constexpr bool in_one = true;  // several elements are loaded at once
  template <class T, int items>
  __device__ Pack<Held<T>, items> load(const Sources<T>& input, int64 index) const {
    return load_leaves<T, items, in_packs>(advanced(input, index));
  }
  template <class T>
  __device__ Held<T> load_one(const Sources<T>& input, int64 index) const {
    return load_element(advanced(input, index));
  }
  // An element that is made of the first numbers of T.
  template <class Part, class T>
  __device__ Part load_first(const Sources<T>& input, int64 index) const {
    return load_element(advanced(first_of<Part>(input), index));
  }
};

// Each leaf in strides of its own: EvenLayout or Layout.
template <class Places, int leaves>
struct SpacedItems {
  static constexpr bool in_one = false;
  Places places;

  template <class T, int items>
  __device__ Pack<Held<T>, items> load(const Sources<T>& input, int64 index) const {
    Pack<Held<T>, items> pack;
#pragma unroll
    for (int k = 0; k < items; ++k) pack.items[k] = load_one(input, index + k);
    return pack;
  }
  template <class T>
  __device__ Held<T> load_one(const Sources<T>& input, int64 index) const {
    int64 offsets[leaves];
    places.offsets(index, offsets);
    return load_element(moved(input, [&](auto leaf) { return offsets[decltype(leaf)::value]; }));
  }
  template <class Part, class T>
  __device__ Part load_first(const Sources<T>& input, int64 index) const {
    int64 offsets[leaves];
    places.offsets(index, offsets);
    return load_element(
        moved(first_of<Part>(input), [&](auto leaf) { return offsets[decltype(leaf)::value]; }));
  }
};

}  // namespace gpualgo

#endif
