// CUB's device algorithms behind C names, for cub.py beside it to time beside gpualgo.
//
// Each reduction follows CUB's two-phase protocol: with temp == nullptr it writes the bytes of
// temporary storage that it wants to *temp_bytes, so that allocation stays out of the timing.

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cstddef>
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_transform.cuh>

namespace {

struct MaxAbs {
  __device__ float operator()(float a, float b) const { return fabsf(a) > fabsf(b) ? a : b; }
};

struct Twice {
  __device__ float operator()(float a) const { return a * 2.0f; }
};

struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};

struct Increment {
  __device__ int8_t operator()(int8_t a) const { return static_cast<int8_t>(a + 1); }
};

#if CCCL_VERSION < 3001000
struct RowStart {
  int64_t columns;
  __host__ __device__ int64_t operator()(int64_t row) const { return row * columns; }
};
#endif

template <typename T>
int sum(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n, cudaStream_t stream) {
  return cub::DeviceReduce::Sum(temp, *temp_bytes, static_cast<const T*>(in), static_cast<T*>(out),
                                n, stream);
}

}  // namespace

#define GPUALGO_BENCH_SUM(name, T)                                                          \
  extern "C" int name(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n, \
                      cudaStream_t stream) {                                                \
    return sum<T>(temp, temp_bytes, in, out, n, stream);                                    \
  }

GPUALGO_BENCH_SUM(cub_sum_float32, float)
GPUALGO_BENCH_SUM(cub_sum_float64, double)
GPUALGO_BENCH_SUM(cub_sum_int32, int32_t)
GPUALGO_BENCH_SUM(cub_sum_int8, int8_t)

extern "C" int cub_max_abs_float32(void* temp, size_t* temp_bytes, const void* in, void* out,
                                   int64_t n, cudaStream_t stream) {
  return cub::DeviceReduce::Reduce(temp, *temp_bytes, static_cast<const float*>(in),
                                   static_cast<float*>(out), n, MaxAbs{}, 0.0f, stream);
}

extern "C" int cub_sum_rows_float32(void* temp, size_t* temp_bytes, const void* in, void* out,
                                    int64_t rows, int columns, cudaStream_t stream) {
#if CCCL_VERSION >= 3001000  // segments of one size came with CCCL 3.1
  return cub::DeviceSegmentedReduce::Sum(temp, *temp_bytes, static_cast<const float*>(in),
                                         static_cast<float*>(out), rows, columns, stream);
#else
  auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0),
                                                RowStart{columns});
  return cub::DeviceSegmentedReduce::Sum(temp, *temp_bytes, static_cast<const float*>(in),
                                         static_cast<float*>(out), rows, starts, starts + 1,
                                         stream);
#endif
}

extern "C" int cub_twice_float32(const void* a, void* out, int64_t n, cudaStream_t stream) {
  return cub::DeviceTransform::Transform(static_cast<const float*>(a), static_cast<float*>(out), n,
                                         Twice{}, stream);
}

extern "C" int cub_product_float32(const void* a, const void* b, void* out, int64_t n,
                                   cudaStream_t stream) {
  return cub::DeviceTransform::Transform(
      cuda::std::make_tuple(static_cast<const float*>(a), static_cast<const float*>(b)),
      static_cast<float*>(out), n, Product{}, stream);
}

extern "C" int cub_increment_int8(const void* a, void* out, int64_t n, cudaStream_t stream) {
  return cub::DeviceTransform::Transform(static_cast<const int8_t*>(a), static_cast<int8_t*>(out),
                                         n, Increment{}, stream);
}
