// What the kernels of a scan share: lines, the sequences to scan, and how a warp's stretch of one
// (scan/stretch.cuh) travels between global and shared memory.
#ifndef GPUALGO_SCAN_LINES_CUH
#define GPUALGO_SCAN_LINES_CUH

#include "parts/bulk_copy.cuh"
#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/intrinsics.cuh"
#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"
#include "scan/stretch.cuh"

namespace gpualgo {

template <class A, class T>
struct ScanCommon {
  Init<A> init;
  const unsigned char* init_address;  // where not null, of the value to start from; of no record
  Sources<T> input;
  Targets<A> output;
  unsigned char* states;
};

// Of lines that are cut into tiles.
template <class A, class T, class Access>
struct ScanTilesParams {
  ScanCommon<A, T> common;
  int64 num_tiles, num_items;  // of all lines; of a line
  int64 num_words;             // of the states
  Divisor tiles_per_line;
  Access access;
};

template <class A, class T>
__device__ inline bool has_init(const ScanCommon<A, T>& common) {
  return common.init.is_given || (!is_record<A> && common.init_address != nullptr);
}

// Returns the value that lines start from, if there is one.
template <class A, class T>
__device__ inline A read_init(const ScanCommon<A, T>& common) {
  if constexpr (!is_record<A>) {
    if (common.init_address != nullptr) return load_item<A>(common.init_address);
  }
  A value;
  memcpy(&value, common.init.value, sizeof(A));
  return value;
}

// --- from global memory and back ------------------------------------------------------------

// Whether a way to lines keeps the numbers of records apart in shared memory, as they are in
// memory.
template <class Access>
inline constexpr bool keeps_apart = false;

// How stretches travel: by loads and stores; loaded past the registers (sm_80); or both ways in
// bulk (sm_90).
enum class Transfer { direct, asynchronous, bulk };

// Ends the copies of a stretch that the warp's own threads made.
template <Transfer transfer>
__device__ inline void end_load(CopyBarrier& barrier) {
  if constexpr (transfer == Transfer::bulk) {
    ptx::syncwarp();
    if (threadIdx.x % warp_threads == 0) barrier.announce(0);
  } else {
    end_copies<transfer == Transfer::asynchronous>();
  }
}

// Whether waiting for a stretch would be short.
template <Transfer transfer>
__device__ inline bool has_arrived(CopyBarrier& barrier, uint32 phase) {
  return transfer != Transfer::bulk || barrier.has_ended(phase % 2);
}

// Waits for a stretch. `phase` counts the loads that its barrier saw before, `later` those that
// this thread has begun since, two at most.
template <Transfer transfer>
__device__ inline void await_load(CopyBarrier& barrier, uint32 phase, int later) {
  if constexpr (transfer == Transfer::bulk) {
    barrier.wait(phase % 2);
  } else if (later == 0) {
    wait_copies<transfer == Transfer::asynchronous, 0>();
  } else if (later == 1) {
    wait_copies<transfer == Transfer::asynchronous, 1>();
  } else {
    wait_copies<transfer == Transfer::asynchronous, 2>();
  }
  ptx::syncwarp();
}

// Lines without gaps between the numbers of each leaf, all forward or all reversed, at fixed
// distances; records have leaves of the same sizes in the input and in the output.
// in_bytes and out_bytes: what all addresses and distances are multiples of, 16 or a number.
template <class A, class T, int in_bytes, int out_bytes, bool is_reversed_>
struct FlatLines {
  static constexpr bool is_reversed = is_reversed_;
  static constexpr bool is_flat = true;
  static constexpr bool stores_vectors = out_bytes == vector_bytes;
  static constexpr int leaves = num_leaves<T>;
  int64 strides[2 * leaves];  // of lines in bytes: of the inputs, of the outputs

  __device__ Sources<T> source(const Sources<T>& input, int64 line) const {
    return moved(input, [&](auto leaf) { return line * strides[decltype(leaf)::value]; });
  }
  __device__ Targets<A> target(const Targets<A>& output, int64 line) const {
    return moved(output, [&](auto leaf) { return line * strides[leaves + decltype(leaf)::value]; });
  }

  // This lane's vector of the stretch of one vector per lane that begins with element `begin`.
  template <class S>
  __device__ Pack<T, S::vector_items> load_vector(const Sources<T>& line, int64 begin) const {
    const unsigned char* source = line.at[0] + vector_at<S>(begin) * int64(sizeof(T));
    Pack<T, S::vector_items> raw;
    if constexpr (in_bytes == vector_bytes) {
      raw = load_pack<T, S::vector_items>(source);
    } else {
#pragma unroll
      for (int i = 0; i < S::vector_items; ++i) raw.items[i] = load_item<T>(source + i * sizeof(T));
    }
    return is_reversed ? S::reverse(raw) : raw;
  }
  template <class S>
  __device__ void store_vector(const Targets<A>& line, int64 begin,
                               const Pack<A, S::vector_items>& pack) const {
    store_pack(line.at[0] + vector_at<S>(begin) * int64(sizeof(A)),
               is_reversed ? S::reverse(pack) : pack);
  }

  // Starts loading the line's `count` elements from number `begin` on into a warp's stretch.
  template <class S, Transfer transfer, class Items>
  __device__ void load(const Items& stretch, const Sources<T>& line, int64 begin, int count,
                       CopyBarrier& barrier) const {
    const int lane = threadIdx.x % warp_threads;
    const Sources<T> from = advanced(line, lowest(begin, count));
    const auto to = lowest_of<S>(stretch, count);
    if (transfer == Transfer::bulk && in_bytes == vector_bytes && is_in_vectors<T>(count)) {
      if (lane == 0) {
        barrier.announce(detail::bytes_from<T>() * count);
        for_each_leaf<T>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          barrier.load(numbers_of<i>(to), from.at[i], count * int(sizeof(Leaf<T, i>)));
        });
      }
      return;
    }
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using Number = Leaf<T, i>;
      if (count == S::warp_items) {
        constexpr int bytes = S::warp_items * int(sizeof(Number));
        constexpr bool is_async = transfer == Transfer::asynchronous && in_bytes >= 4;
        auto* target = reinterpret_cast<unsigned char*>(numbers_of<i>(to));
#pragma unroll
        for (int first = 0; first < bytes; first += warp_threads * in_bytes) {
          const int at = first + lane * in_bytes;
          if (bytes % (warp_threads * in_bytes) == 0 || at < bytes) {
            copy_to_shared<is_async, in_bytes>(target + at, from.at[i] + at);
          }
        }
      } else {
#pragma unroll 4
        for (int k = lane; k < count; k += warp_threads) {
          numbers_of<i>(to)[k] = load_item<Number>(from.at[i] + k * int64(sizeof(Number)));
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
    const Targets<A> to = advanced(line, lowest(begin, count));
    const auto from = lowest_of<S>(stretch, count);
    if (transfer == Transfer::bulk && out_bytes == vector_bytes && is_in_vectors<A>(count)) {
      if (lane == 0) {
        for_each_leaf<A>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          ptx::cp_async_bulk_global_shared(to.at[i], numbers_of<i>(from),
                                           count * int(sizeof(Leaf<A, i>)));
        });
        ptx::cp_async_bulk_commit_group();
      }
      return;
    }
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using Number = Leaf<A, i>;
      if (count == S::warp_items) {
        constexpr int items = out_bytes / int(sizeof(Number));
#pragma unroll
        for (int first = 0; first < S::warp_items; first += warp_threads * items) {
          const int at = first + lane * items;
          if (S::warp_items % (warp_threads * items) == 0 || at < S::warp_items) {
            store_pack(to.at[i] + at * sizeof(Number),
                       load_pack<Number, items>(numbers_of<i>(from) + at));
          }
        }
      } else {
#pragma unroll 4
        for (int k = lane; k < count; k += warp_threads) {
          store_pack(to.at[i] + k * int64(sizeof(Number)),
                     load_pack<Number, 1>(numbers_of<i>(from) + k));
        }
      }
    });
  }

 private:
  template <class S>
  __device__ static int64 vector_at(int64 begin) {
    const int lane = threadIdx.x % warp_threads;
    return lowest(begin + lane * S::vector_items, S::vector_items);
  }
  // How far the element with the lowest address among `count` from number `begin` on lies behind
  // the line's first.
  __device__ static int64 lowest(int64 begin, int count) {
    return is_reversed ? 1 - begin - count : begin;
  }
  // Where that element lies in a stretch.
  template <class S, class Items>
  __device__ static Items lowest_of(const Items& stretch, int count) {
    return stretch + (is_reversed ? S::warp_items - count : 0);
  }
  // Whether `count` numbers of each leaf are whole vectors.
  template <class U>
  __device__ static bool is_in_vectors(int count) {
    bool result = true;
    for_each_leaf<U>([&](auto leaf) {
      result &= count * int(sizeof(Leaf<U, decltype(leaf)::value>)) % vector_bytes == 0;
    });
    return result;
  }
};

template <class A, class T, int in_bytes, int out_bytes, bool is_reversed>
inline constexpr bool keeps_apart<FlatLines<A, T, in_bytes, out_bytes, is_reversed>> = is_record<A>;

}  // namespace gpualgo

#endif
