// Lines of records: each leaf's numbers in even steps of their own.
#ifndef GPUALGO_SCAN_STEPPED_LINES_CUH
#define GPUALGO_SCAN_STEPPED_LINES_CUH

#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "scan/lines.cuh"

namespace gpualgo {

// A reversed scan is one whose steps are. Neighbouring lanes take neighbouring elements, a number
// at a time, so that what a warp reads or writes of a leaf without gaps is without gaps.
// reads_whole, writes_whole: records lie in memory as in shared memory, without gaps, at multiples
// of a vector: they travel as the bytes that they are.
template <class A, class T, bool reads_whole = false, bool writes_whole = false>
struct SteppedLines {
  static constexpr bool is_reversed = false, is_flat = true, stores_vectors = true;
  static constexpr int leaves = num_leaves<T>;
  int64 steps[2 * leaves];   // bytes: of the inputs, of the outputs
  Layout<2 * leaves> lines;  // as many

  __device__ Sources<T> source(const Sources<T>& input, int64 line) const {
    int64 offsets[2 * leaves];
    lines.offsets(line, offsets);
    return moved(input, [&](auto leaf) { return offsets[decltype(leaf)::value]; });
  }
  __device__ Targets<A> target(const Targets<A>& output, int64 line) const {
    int64 offsets[2 * leaves];
    lines.offsets(line, offsets);
    return moved(output, [&](auto leaf) { return offsets[leaves + decltype(leaf)::value]; });
  }

  // This lane's vector of the stretch of one vector per lane that begins with element `begin`.
  template <class S>
  __device__ Pack<T, S::vector_items> load_vector(const Sources<T>& line, int64 begin) const {
    const int64 first = begin + int(threadIdx.x % warp_threads) * S::vector_items;
    if constexpr (reads_whole) {
      return load_pack<T, S::vector_items>(line.at[0] + first * int64(sizeof(T)));
    }
    Pack<T, S::vector_items> pack;
#pragma unroll
    for (int k = 0; k < S::vector_items; ++k) {
      pack.items[k] = load_element(
          moved(line, [&](auto leaf) { return (first + k) * steps[decltype(leaf)::value]; }));
    }
    return pack;
  }
  template <class S>
  __device__ void store_vector(const Targets<A>& line, int64 begin,
                               const Pack<A, S::vector_items>& pack) const {
    const int64 first = begin + int(threadIdx.x % warp_threads) * S::vector_items;
    if constexpr (writes_whole) {
      store_pack(line.at[0] + first * int64(sizeof(A)), pack);
      return;
    }
#pragma unroll
    for (int k = 0; k < S::vector_items; ++k) {
      const auto to = moved(
          line, [&](auto leaf) { return (first + k) * steps[leaves + decltype(leaf)::value]; });
      store_element(to, pack.items[k]);
    }
  }

  // Starts loading the line's `count` elements from number `begin` on into a warp's stretch.
  template <class S, Transfer transfer>
  __device__ void load(T* stretch, const Sources<T>& line, int64 begin, int count,
                       CopyBarrier& barrier) const {
    const int lane = threadIdx.x % warp_threads;
    if (reads_whole && count == S::warp_items) {
      constexpr int bytes = S::warp_items * sizeof(T);
      const unsigned char* source = line.at[0] + begin * int64(sizeof(T));
      if constexpr (transfer == Transfer::bulk) {
        if (lane == 0) {
          barrier.announce(bytes);
          barrier.load(stretch, source, bytes);
        }
        return;
      }
      auto* target = reinterpret_cast<unsigned char*>(stretch);
#pragma unroll
      for (int i = 0; i < bytes; i += warp_threads * vector_bytes) {
        const int at = i + lane * vector_bytes;
        if (at < bytes) {
          copy_to_shared<transfer == Transfer::asynchronous, vector_bytes>(target + at,
                                                                           source + at);
        }
      }
      end_load<transfer>(barrier);
      return;
    }
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      const unsigned char* source = line.at[i] + (begin + lane) * steps[i];
      if constexpr (transfer == Transfer::asynchronous && sizeof(Leaf<T, i>) >= 4) {
        copy_leaf<i>(stretch, source, count);
      } else {
        take_leaf<i>(stretch, source, count);
      }
    });
    end_load<transfer>(barrier);
  }

  // Writes a warp's stretch of results, which all its lanes see.
  template <class S, Transfer transfer>
  __device__ void store(const A* stretch, const Targets<A>& line, int64 begin, int count) const {
    const int lane = threadIdx.x % warp_threads;
    if (writes_whole && count == S::warp_items) {
      constexpr int bytes = S::warp_items * sizeof(A);
      unsigned char* target = line.at[0] + begin * int64(sizeof(A));
      if constexpr (transfer == Transfer::bulk) {
        if (lane == 0) {
          ptx::cp_async_bulk_global_shared(target, stretch, bytes);
          ptx::cp_async_bulk_commit_group();
        }
        return;
      }
      const auto* source = reinterpret_cast<const unsigned char*>(stretch);
#pragma unroll
      for (int i = 0; i < bytes; i += warp_threads * vector_bytes) {
        const int at = i + lane * vector_bytes;
        if (at < bytes) store_pack(target + at, load_pack<uint8, vector_bytes>(source + at));
      }
      return;
    }
    Targets<A> to = moved(
        line, [&](auto leaf) { return (begin + lane) * steps[leaves + decltype(leaf)::value]; });
#pragma unroll 4
    for (int k = lane; k < count; k += warp_threads) {
      store_leaves(to, load_pack<A, 1>(stretch + k));
      to = moved(to,
                 [&](auto leaf) { return warp_threads * steps[leaves + decltype(leaf)::value]; });
    }
  }

 private:
  template <int i>
  __device__ void copy_leaf(T* stretch, const unsigned char* source, int count) const {
#pragma unroll 8
    for (int k = threadIdx.x % warp_threads; k < count; k += warp_threads) {
      copy_to_shared<true, sizeof(Leaf<T, i>)>(&leaf_of<i>(stretch[k]), source);
      source += warp_threads * steps[i];
    }
  }
  // By loads and stores: several loads are under way before the first store.
  template <int i>
  __device__ void take_leaf(T* stretch, const unsigned char* source, int count) const {
    constexpr int batch = 8;
#pragma unroll 1
    for (int k = threadIdx.x % warp_threads; k < count; k += batch * warp_threads) {
      Leaf<T, i> numbers[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        if (k + j * warp_threads < count) {
          numbers[j] = load_item<Leaf<T, i>>(source + j * warp_threads * steps[i]);
        }
      }
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        if (k + j * warp_threads < count) leaf_of<i>(stretch[k + j * warp_threads]) = numbers[j];
      }
      source += batch * warp_threads * steps[i];
    }
  }
};

}  // namespace gpualgo

#endif
