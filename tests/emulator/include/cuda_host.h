// CUDA C++ for a compiler of C++: included before any kernel.
#ifndef GPUALGO_EMULATOR_CUDA_HOST_H
#define GPUALGO_EMULATOR_CUDA_HOST_H

#include <math.h>
#include <string.h>

#include "kernel_calls.h"

#define __device__
#define __global__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (emu_thread_index())
#define blockIdx (emu_block_index())
#define blockDim (emu_block_size())
#define gridDim (emu_grid_size())

// Copied whole, by one load and one store.
#define GPUALGO_VECTOR(name, words, ...)                                       \
  union alignas(4 * words) name {                                              \
    unsigned all __attribute__((vector_size(4 * words)));                      \
    struct {                                                                   \
      unsigned __VA_ARGS__;                                                    \
    };                                                                         \
    name() = default;                                                          \
    __attribute__((always_inline)) name(const name& other) : all(other.all) {} \
    __attribute__((always_inline)) name& operator=(const name& other) {        \
      all = other.all;                                                         \
      return *this;                                                            \
    }                                                                          \
  };
GPUALGO_VECTOR(uint2, 2, x, y)
GPUALGO_VECTOR(uint4, 4, x, y, z, w)

inline uint2 make_uint2(unsigned x, unsigned y) {
  uint2 made;
  made.all = decltype(made.all){x, y};
  return made;
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  uint4 made;
  made.all = decltype(made.all){x, y, z, w};
  return made;
}

inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}
inline long long __double_as_longlong(double x) {
  long long bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline double __longlong_as_double(long long bits) {
  double x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

namespace emu {

template <class Params>
inline void call(void (*kernel)(Params), const void* params) {
  kernel(*static_cast<const Params*>(params));
}
template <class Params>
constexpr unsigned long long params_size(void (*)(Params)) {
  return sizeof(Params);
}

}  // namespace emu

#endif
