// A warp's stretch of a line in shared memory.
//
// A warp takes a stretch of `warp_items` elements; each of its lanes folds and later scans the same
// number of neighbours, in vectors of 16 bytes. That number of vectors is odd, so that the accesses
// of a warp fall into different banks.
#ifndef GPUALGO_SCAN_STRETCH_CUH
#define GPUALGO_SCAN_STRETCH_CUH

#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/leaves.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// A warp's stretch of `items` records that keeps their numbers apart: the first ones of all, then
// the second ones, and so on. Any other is a pointer.
template <class U, int items>
struct ApartStretch {
  unsigned char* bytes;
  int first = 0;  // where what is asked for begins

  template <int i>
  __device__ Leaf<U, i>* numbers() const {
    return reinterpret_cast<Leaf<U, i>*>(bytes + items * bytes_before<i>()) + first;
  }
  __device__ ApartStretch operator+(int count) const { return {bytes, first + count}; }

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

// The numbers of one leaf in a stretch.
template <int i, class U>
__device__ inline U* numbers_of(U* stretch) {
  return stretch;
}
template <int i, class U, int items>
__device__ inline Leaf<U, i>* numbers_of(const ApartStretch<U, items>& stretch) {
  return stretch.template numbers<i>();
}

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

}  // namespace gpualgo

#endif
