// What the kernels of a scan share: a warp and its stretch of a line in shared memory.
//
// A line is one of the sequences to scan. A warp takes a stretch of `warp_items` elements; each of
// its lanes folds and later scans the same number of neighbours, in vectors of 16 bytes. That
// number of vectors is odd, so that the accesses of a warp fall into different banks.
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

// A warp's stretch of `items` records that keeps their numbers apart: the first ones of all, then
// the second ones, and so on. Any other is a pointer.
template <class U, int items>
struct ApartStretch {
  unsigned char* bytes;

  template <int i>
  __device__ Leaf<U, i>* numbers() const {
    return reinterpret_cast<Leaf<U, i>*>(bytes + items * bytes_before<i>());
  }

 private:
  template <int i>
  __device__ static constexpr int bytes_before() {
    if constexpr (i == 0) {
      return 0;
    } else {
      return bytes_before<i - 1>() + int(sizeof(Leaf<U, i - 1>));
    }
  }
};

// Neighbours of a stretch, from number `first` on, a multiple of their count.
template <int count, class U>
__device__ inline Pack<U, count> load_items(const U* stretch, int first) {
  return load_pack<U, count>(stretch + first);
}
template <int count, class U, int items>
__device__ inline Pack<U, count> load_items(const ApartStretch<U, items>& stretch, int first) {
  Pack<U, count> result;
  for_each_leaf<U>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    const auto numbers = load_pack<Leaf<U, i>, count>(stretch.template numbers<i>() + first);
#pragma unroll
    for (int k = 0; k < count; ++k) leaf_of<i>(result.items[k]) = numbers.items[k];
  });
  return result;
}
template <int count, class U>
__device__ inline void store_items(U* stretch, int first, const Pack<U, count>& pack) {
  store_pack(stretch + first, pack);
}
template <int count, class U, int items>
__device__ inline void store_items(const ApartStretch<U, items>& stretch, int first,
                                   const Pack<U, count>& pack) {
  for_each_leaf<U>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    Pack<Leaf<U, i>, count> numbers;
#pragma unroll
    for (int k = 0; k < count; ++k) numbers.items[k] = leaf_of<i>(pack.items[k]);
    store_pack(stretch.template numbers<i>() + first, numbers);
  });
}

// One element of a stretch.
template <class U>
__device__ inline const U& item_of(const U* stretch, int slot) {
  return stretch[slot];
}
template <class U, int items>
__device__ inline U item_of(const ApartStretch<U, items>& stretch, int slot) {
  return load_items<1>(stretch, slot).items[0];
}
template <class U>
__device__ inline void put_item(U* stretch, int slot, const U& item) {
  stretch[slot] = item;
}
template <class U, int items>
__device__ inline void put_item(const ApartStretch<U, items>& stretch, int slot, const U& item) {
  store_items(stretch, slot, Pack<U, 1>{{item}});
}

// How a warp's stretch lies in shared memory: in the order of memory, which a reversed scan walks
// from its end.
template <class A, class T, int vectors, bool is_reversed>
struct Stretch {
  static constexpr int widest = sizeof(T) > sizeof(A) ? sizeof(T) : sizeof(A);
  // A power of two; of records whose sizes are none, a vector may have less than 16 bytes, or more.
  static constexpr int vector_items = widest > 8   ? 1
                                      : widest > 4 ? 2
                                      : widest > 2 ? 4
                                                   : 16 / widest;
  static constexpr int lane_items = vectors * vector_items;
  static constexpr int warp_items = warp_threads * lane_items;

  // Where the element lies that is scanned as number `position` of the stretch.
  __device__ static int slot(int position) {
    return is_reversed ? warp_items - 1 - position : position;
  }

  // This lane's vector number `v`, in the order of the scan.
  template <class Items>
  __device__ static auto load(const Items& stretch, int v) {
    const int first = int(threadIdx.x % warp_threads) * lane_items + v * vector_items;
    const auto raw =
        load_items<vector_items>(stretch, is_reversed ? slot(first + vector_items - 1) : first);
    return is_reversed ? reverse(raw) : raw;
  }
  template <class Items, class U>
  __device__ static void store(const Items& stretch, int v, const Pack<U, vector_items>& pack) {
    const int first = int(threadIdx.x % warp_threads) * lane_items + v * vector_items;
    store_items(stretch, is_reversed ? slot(first + vector_items - 1) : first,
                is_reversed ? reverse(pack) : pack);
  }
  template <class U>
  __device__ static Pack<U, vector_items> reverse(const Pack<U, vector_items>& pack) {
    Pack<U, vector_items> result;
#pragma unroll
    for (int i = 0; i < vector_items; ++i) result.items[i] = pack.items[vector_items - 1 - i];
    return result;
  }

  // How many of the stretch's `count` elements are this lane's, and how many lanes have any.
  __device__ static int items_of_lane(int count) {
    const int rest = count - int(threadIdx.x % warp_threads) * lane_items;
    return rest <= 0 ? 0 : rest < lane_items ? rest : lane_items;
  }
  __device__ static int active_lanes(int count) {
    return count >= warp_items ? warp_threads : (count + lane_items - 1) / lane_items;
  }
};

// Folds this lane's `count` elements (at least one).
template <class S, class Op, class A, class Items>
__device__ inline A fold_lane(const Items& stretch, int count) {
  if (count == S::lane_items) {
    A value = fold_pack<Op, A>(S::load(stretch, 0));
#pragma unroll 4
    for (int v = 1; v < S::lane_items / S::vector_items; ++v) {
      value = Op::apply(value, fold_pack<Op, A>(S::load(stretch, v)));
    }
    return value;
  }
  const int first = int(threadIdx.x % warp_threads) * S::lane_items;
  A value = convert<A>(item_of(stretch, S::slot(first)));
#pragma unroll 1
  for (int i = 1; i < count; ++i) {
    value = Op::apply(value, convert<A>(item_of(stretch, S::slot(first + i))));
  }
  return value;
}

// Writes the scan of this lane's `count` elements, which starts from `before`, to `result`; that
// may be where the elements lie, if both types have one size.
template <class S, bool is_exclusive, class Op, class A, class Items, class Results>
__device__ inline void scan_lane(const Items& stretch, const Results& result, int count,
                                 Running<Op, A> before) {
  auto step = [&](const auto& item) {
    const A old = before.total;
    before.append(convert<A>(item));
    return is_exclusive ? old : before.total;
  };
  // Only a line's first element may have nothing before it.
  if (count == S::lane_items && !before.is_empty) {
#pragma unroll 3
    for (int v = 0; v < S::lane_items / S::vector_items; ++v) {
      const auto pack = S::load(stretch, v);
      Pack<A, S::vector_items> scanned;
#pragma unroll
      for (int i = 0; i < S::vector_items; ++i) {
        before.is_empty = false;  // which the compiler cannot see
        scanned.items[i] = step(pack.items[i]);
      }
      S::store(result, v, scanned);
    }
    return;
  }
  const int first = int(threadIdx.x % warp_threads) * S::lane_items;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int slot = S::slot(first + i);
    put_item(result, slot, step(item_of(stretch, slot)));
  }
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

// Lines without gaps between their elements, all forward or all reversed, at fixed distances.
// in_bytes and out_bytes: what both addresses and distances are multiples of, 16 or an element.
template <class A, class T, int in_bytes, int out_bytes, bool is_reversed_>
struct FlatLines {
  static constexpr bool is_reversed = is_reversed_;
  static constexpr bool is_flat = true;
  static constexpr bool stores_vectors = out_bytes == vector_bytes;
  int64 input_stride, output_stride;  // of lines, in bytes
  int64 num_items;                    // of a line

  __device__ Sources<T> source(const Sources<T>& input, int64 line) const {
    return {input.at[0] + line * input_stride};
  }
  __device__ Targets<A> target(const Targets<A>& output, int64 line) const {
    return {output.at[0] + line * output_stride};
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
  template <class S, Transfer transfer>
  __device__ void load(T* stretch, const Sources<T>& line, int64 begin, int count,
                       CopyBarrier& barrier) const {
    const int lane = threadIdx.x % warp_threads;
    const unsigned char* source = line.at[0] + lowest(begin, count) * int64(sizeof(T));
    constexpr int bytes = S::warp_items * sizeof(T);
    constexpr bool in_bulk = transfer == Transfer::bulk && in_bytes == 16;
    if (in_bulk && count == S::warp_items) {
      if (lane == 0) {
        barrier.announce(bytes);
        barrier.load(stretch, source, bytes);
      }
      return;
    }
    if (count == S::warp_items) {
      auto* target = reinterpret_cast<unsigned char*>(stretch);
      constexpr bool is_async = transfer == Transfer::asynchronous && in_bytes >= 4;
#pragma unroll
      for (int i = 0; i < bytes; i += warp_threads * in_bytes) {
        const int at = i + lane * in_bytes;
        if (bytes % (warp_threads * in_bytes) == 0 || at < bytes) {
          copy_to_shared<is_async, in_bytes>(target + at, source + at);
        }
      }
    } else {
      T* target = stretch + (is_reversed ? S::warp_items - count : 0);
      for (int i = lane; i < count; i += warp_threads) {
        target[i] = load_item<T>(source + i * int64(sizeof(T)));
      }
    }
    end_load<transfer>(barrier);
  }

  // Writes a warp's stretch of results, which all its lanes see.
  template <class S, Transfer transfer>
  __device__ void store(const A* stretch, const Targets<A>& line, int64 begin, int count) const {
    const int lane = threadIdx.x % warp_threads;
    unsigned char* target = line.at[0] + lowest(begin, count) * int64(sizeof(A));
    if (transfer == Transfer::bulk && out_bytes == 16 && count == S::warp_items) {
      if (lane == 0) {
        ptx::cp_async_bulk_global_shared(target, stretch, S::warp_items * sizeof(A));
        ptx::cp_async_bulk_commit_group();
      }
    } else if (count == S::warp_items) {
      constexpr int items = out_bytes / sizeof(A);
#pragma unroll
      for (int i = 0; i < S::warp_items; i += warp_threads * items) {
        const int at = i + lane * items;
        if (S::warp_items % (warp_threads * items) == 0 || at < S::warp_items) {
          store_pack(target + at * sizeof(A), load_pack<A, items>(stretch + at));
        }
      }
    } else {
      const A* source = stretch + (is_reversed ? S::warp_items - count : 0);
      for (int i = lane; i < count; i += warp_threads) {
        store_pack(target + i * int64(sizeof(A)), load_pack<A, 1>(source + i));
      }
    }
  }

 private:
  template <class S>
  __device__ int64 vector_at(int64 begin) const {
    const int lane = threadIdx.x % warp_threads;
    return lowest(begin + lane * S::vector_items, S::vector_items);
  }
  // The element with the lowest address among `count` from number `begin` on.
  __device__ int64 lowest(int64 begin, int count) const {
    return is_reversed ? num_items - begin - count : begin;
  }
};

// Lines of any strides; a reversed scan is one whose strides are. For records see
// scan/stepped_lines.cuh.
template <class A, class T>
struct StridedLines {
  static constexpr bool is_reversed = false, is_flat = false, stores_vectors = false;
  Layout<2> lines, elements;  // operand 0: the input, 1: the output

  __device__ Sources<T> source(const Sources<T>& input, int64 line) const {
    return {input.at[0] + both(lines, line, 0)};
  }
  __device__ Targets<A> target(const Targets<A>& output, int64 line) const {
    return {output.at[0] + both(lines, line, 1)};
  }

  template <class S, Transfer transfer>
  __device__ void load(T* stretch, const Sources<T>& line, int64 begin, int count,
                       CopyBarrier& barrier) const {
    for (int i = threadIdx.x % warp_threads; i < count; i += warp_threads) {
      stretch[i] = load_item<T>(line.at[0] + both(elements, begin + i, 0));
    }
    end_load<transfer>(barrier);
  }
  template <class S, Transfer transfer>
  __device__ void store(const A* stretch, const Targets<A>& line, int64 begin, int count) const {
    for (int i = threadIdx.x % warp_threads; i < count; i += warp_threads) {
      store_pack(line.at[0] + both(elements, begin + i, 1), load_pack<A, 1>(stretch + i));
    }
  }

 private:
  __device__ static int64 both(const Layout<2>& layout, int64 index, int operand) {
    int64 offsets[2];
    layout.offsets(index, offsets);
    return operand == 0 ? offsets[0] : offsets[1];
  }
};

}  // namespace gpualgo

#endif
