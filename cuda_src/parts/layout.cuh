// From a linear index to a byte offset, for arrays of any strides.
#ifndef GPUALGO_PARTS_LAYOUT_CUH
#define GPUALGO_PARTS_LAYOUT_CUH

#include "parts/intrinsics.cuh"
#include "parts/types.cuh"

namespace gpualgo {

constexpr int max_dims = 12;

// Division by a number that the host knows: one multiplication and a shift, exact for every
// non-negative dividend (Granlund and Montgomery 1994, doi:10.1145/178243.178249).
struct Divisor {
  int64 value;
  uint64 magic;  // 0 stands for division by one
  int64 shift;

  __device__ int64 divide(int64 dividend) const {
    return magic == 0 ? dividend : int64(ptx::umulhi(uint64(dividend), magic) >> shift);
  }
  __device__ int64 part(int64 dividend) const { return dividend - divide(dividend) * value; }
};

// The offsets of `Operands` arrays that are walked together, outermost dimension first.
template <int Operands>
struct Layout {
  int64 num_dims;
  Divisor extents[max_dims];
  int64 strides[Operands][max_dims];  // bytes

  __device__ void offsets(int64 index, int64 (&result)[Operands]) const {
#pragma unroll
    for (int operand = 0; operand < Operands; ++operand) result[operand] = 0;
    for (int dim = int(num_dims) - 1; dim >= 0; --dim) {
      int64 rest = dim == 0 ? 0 : extents[dim].divide(index);
      int64 position = index - rest * extents[dim].value;
#pragma unroll
      for (int operand = 0; operand < Operands; ++operand) {
        result[operand] += position * strides[operand][dim];
      }
      index = rest;
    }
  }

  __device__ int64 offset(int64 index) const {
    static_assert(Operands == 1);
    int64 result[1];
    offsets(index, result);
    return result[0];
  }
};

// As Layout, of one dimension.
template <int Operands>
struct EvenLayout {
  int64 strides[Operands];  // bytes

  __device__ void offsets(int64 index, int64 (&result)[Operands]) const {
#pragma unroll
    for (int operand = 0; operand < Operands; ++operand) {
      result[operand] = index * strides[operand];
    }
  }
};

// As Layout, of two dimensions, the inner one of fewer than 2^31: of neighbours, however few stand
// in an inner dimension, only the first one's place takes a division.
template <int Operands>
struct NestedLayout {
  Divisor inner;             // its extent
  int64 outer[Operands];     // bytes, from one inner dimension to the next
  int64 strides[Operands];   // along it
  int64 to_first[Operands];  // from its last element to the first of the next

  __device__ void offsets(int64 index, int64 (&result)[Operands]) const {
    for_each<1>(index, [&](int, const int64(&offsets)[Operands]) {
#pragma unroll
      for (int operand = 0; operand < Operands; ++operand) result[operand] = offsets[operand];
    });
  }

  // Calls visit(i, offsets of index + i) for i < count.
  template <int count, class Visit>
  __device__ void for_each(int64 index, Visit visit) const {
    const int64 row = inner.divide(index);
    int position = int(index - row * inner.value);
    int64 offsets[Operands];
#pragma unroll
    for (int operand = 0; operand < Operands; ++operand) {
      offsets[operand] = row * outer[operand] + position * strides[operand];
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      visit(i, offsets);
      const bool is_last = ++position == int(inner.value);
      if (is_last) position = 0;
#pragma unroll
      for (int operand = 0; operand < Operands; ++operand) {
        offsets[operand] += is_last ? to_first[operand] : strides[operand];
      }
    }
  }
};

}  // namespace gpualgo

#endif
