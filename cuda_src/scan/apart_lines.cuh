// Lines of records whose leaves have no gaps: each leaf's numbers travel as the bytes that they
// are, and stay apart in shared memory.
#ifndef GPUALGO_SCAN_APART_LINES_CUH
#define GPUALGO_SCAN_APART_LINES_CUH

#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "scan/lines.cuh"

namespace gpualgo {

// All leaves and their lines begin at multiples of a vector; none is reversed. Input and output
// have leaves of the same sizes.
template <class A, class T>
struct ApartLines {
  static constexpr bool is_reversed = false;
  static constexpr int leaves = num_leaves<T>;
  Layout<2 * leaves> lines;  // of the inputs, of the outputs

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

  // Starts loading the line's `count` elements from number `begin` on into a warp's stretch.
  template <class S, Transfer transfer, class Items>
  __device__ void load(const Items& stretch, const Sources<T>& line, int64 begin, int count,
                       CopyBarrier& barrier) const {
    const int lane = threadIdx.x % warp_threads;
    const Sources<T> from = advanced(line, begin);
    if (transfer == Transfer::bulk && count == S::warp_items) {
      if (lane == 0) {
        barrier.announce(detail::bytes_from<T>() * S::warp_items);
        for_each_leaf<T>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          barrier.load(stretch.template numbers<i>(), from.at[i],
                       S::warp_items * int(sizeof(Leaf<T, i>)));
        });
      }
      return;
    }
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using Number = Leaf<T, i>;
      Number* target = stretch.template numbers<i>();
      if (count == S::warp_items) {
        constexpr int bytes = S::warp_items * int(sizeof(Number));
        auto* to = reinterpret_cast<unsigned char*>(target);
#pragma unroll
        for (int first = 0; first < bytes; first += warp_threads * vector_bytes) {
          const int at = first + lane * vector_bytes;
          if (at < bytes) {
            copy_to_shared<transfer == Transfer::asynchronous, vector_bytes>(to + at,
                                                                             from.at[i] + at);
          }
        }
      } else {
        for (int k = lane; k < count; k += warp_threads) {
          target[k] = load_item<Number>(from.at[i] + k * int(sizeof(Number)));
        }
      }
    });
    end_load<transfer>(barrier);
  }

  // Writes a warp's stretch of results, which all its lanes see.
  template <class S, Transfer transfer, class Items>
  __device__ void store(const Items& stretch, const Targets<A>& line, int64 begin,
                        int count) const {
    const int lane = threadIdx.x % warp_threads;
    const Targets<A> to = advanced(line, begin);
    if (transfer == Transfer::bulk && count == S::warp_items) {
      if (lane == 0) {
        for_each_leaf<A>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          ptx::cp_async_bulk_global_shared(to.at[i], stretch.template numbers<i>(),
                                           S::warp_items * int(sizeof(Leaf<A, i>)));
        });
        ptx::cp_async_bulk_commit_group();
      }
      return;
    }
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using Number = Leaf<A, i>;
      const Number* source = stretch.template numbers<i>();
      if (count == S::warp_items) {
        constexpr int bytes = S::warp_items * int(sizeof(Number));
        const auto* from = reinterpret_cast<const unsigned char*>(source);
#pragma unroll
        for (int first = 0; first < bytes; first += warp_threads * vector_bytes) {
          const int at = first + lane * vector_bytes;
          if (at < bytes) store_pack(to.at[i] + at, load_pack<uint8, vector_bytes>(from + at));
        }
      } else {
        for (int k = lane; k < count; k += warp_threads) {
          store_pack(to.at[i] + k * int(sizeof(Number)), load_pack<Number, 1>(source + k));
        }
      }
    });
  }
};

template <class A, class T>
inline constexpr bool keeps_apart<ApartLines<A, T>> = true;

}  // namespace gpualgo

#endif
