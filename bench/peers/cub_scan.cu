// CUB's inclusive scans behind C names; the protocol of temporary storage is that of cub.cu.
//
// 32-bit sizes, as CUB advises below 2^31 items: its tiles are larger with them.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_scan.cuh>

namespace {

struct MaxAbs {
  __device__ float operator()(float a, float b) const { return fabsf(a) > fabsf(b) ? a : b; }
};

template <typename T>
int sum(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n, cudaStream_t stream) {
  if (n > INT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceScan::InclusiveSum(temp, *temp_bytes, static_cast<const T*>(in),
                                       static_cast<T*>(out), static_cast<int32_t>(n), stream);
}

}  // namespace

#define GPUALGO_BENCH_SCAN(name, T)                                                         \
  extern "C" int name(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n, \
                      cudaStream_t stream) {                                                \
    return sum<T>(temp, temp_bytes, in, out, n, stream);                                    \
  }

GPUALGO_BENCH_SCAN(cub_scan_float32, float)
GPUALGO_BENCH_SCAN(cub_scan_float64, double)
GPUALGO_BENCH_SCAN(cub_scan_int64, int64_t)
GPUALGO_BENCH_SCAN(cub_scan_int8, int8_t)

extern "C" int cub_scan_max_abs_float32(void* temp, size_t* temp_bytes, const void* in, void* out,
                                        int64_t n, cudaStream_t stream) {
  if (n > INT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceScan::InclusiveScan(temp, *temp_bytes, static_cast<const float*>(in),
                                        static_cast<float*>(out), MaxAbs{}, static_cast<int32_t>(n),
                                        stream);
}
