// Lines of elements that are computed: of numbers in even steps of their own, where they are
// loaded.
#ifndef GPUALGO_SCAN_COMPUTED_LINES_CUH
#define GPUALGO_SCAN_COMPUTED_LINES_CUH

#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "scan/lines.cuh"

namespace gpualgo {

// As SteppedLines; what a warp puts into its stretch is what the function makes.
template <class A, class T>
struct ComputedLines {
  static constexpr bool is_reversed = false, is_flat = true, stores_vectors = true;
  static constexpr int inputs = num_leaves<T>, outputs = num_leaves<A>;
  int64 steps[inputs + outputs];   // bytes
  Layout<inputs + outputs> lines;  // as many operands

  __device__ Sources<T> source(const Sources<T>& input, int64 line) const {
    int64 offsets[inputs + outputs];
    lines.offsets(line, offsets);
    return moved(input, [&](auto leaf) { return offsets[decltype(leaf)::value]; });
  }
  __device__ Targets<A> target(const Targets<A>& output, int64 line) const {
    int64 offsets[inputs + outputs];
    lines.offsets(line, offsets);
    return moved(output, [&](auto leaf) { return offsets[inputs + decltype(leaf)::value]; });
  }

  // This lane's vector of the stretch of one vector per lane that begins with element `begin`.
  template <class S>
  __device__ Pack<Held<T>, S::vector_items> load_vector(const Sources<T>& line, int64 begin) const {
    const int64 first = begin + int(threadIdx.x % warp_threads) * S::vector_items;
    Pack<Held<T>, S::vector_items> pack;
#pragma unroll
    for (int k = 0; k < S::vector_items; ++k) pack.items[k] = load_element(at(line, first + k));
    return pack;
  }
  template <class S>
  __device__ void store_vector(const Targets<A>& line, int64 begin,
                               const Pack<A, S::vector_items>& pack) const {
    const int64 first = begin + int(threadIdx.x % warp_threads) * S::vector_items;
#pragma unroll
    for (int k = 0; k < S::vector_items; ++k) store_element(to(line, first + k), pack.items[k]);
  }

  // Loads the line's `count` elements from number `begin` on into a warp's stretch.
  template <class S, Transfer transfer>
  __device__ void load(Held<T>* stretch, const Sources<T>& line, int64 begin, int count,
                       CopyBarrier& barrier) const {
    static_assert(transfer == Transfer::direct, "what is computed passes registers");
    using Numbers = typename detail::ReadType<T>::type;
    constexpr int batch = 8;  // loads that are under way before the first element is made
    Sources<Numbers> read;
    for_each_leaf<T>([&](auto leaf) { read.at[leaf.value] = line.at[leaf.value]; });
    const int lane = threadIdx.x % warp_threads;
#pragma unroll 1
    for (int k = lane; k < count; k += batch * warp_threads) {
      Numbers numbers[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const int i = k + j * warp_threads;
        if (i < count) numbers[j] = load_element(at(read, begin + i));
      }
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const int i = k + j * warp_threads;
        if (i < count) stretch[i] = computed<Held<T>>(numbers[j]);
      }
    }
    end_load<transfer>(barrier);
  }

  // Writes a warp's stretch of results, which all its lanes see.
  template <class S, Transfer transfer>
  __device__ void store(const A* stretch, const Targets<A>& line, int64 begin, int count) const {
#pragma unroll 4
    for (int k = threadIdx.x % warp_threads; k < count; k += warp_threads) {
      store_leaves(to(line, begin + k), load_pack<A, 1>(stretch + k));
    }
  }

 private:
  template <class U>
  __device__ Sources<U> at(const Sources<U>& line, int64 index) const {
    return moved(line, [&](auto leaf) { return index * steps[decltype(leaf)::value]; });
  }
  __device__ Targets<A> to(const Targets<A>& line, int64 index) const {
    return moved(line, [&](auto leaf) { return index * steps[inputs + decltype(leaf)::value]; });
  }
};

}  // namespace gpualgo

#endif
