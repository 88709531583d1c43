// CUB's reductions and scans by key behind C names; the protocol of temporary storage is that of
// cub.cu. 32-bit sizes, as CUB advises below 2^31 items.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

namespace {

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Same {
  __device__ bool operator()(int32_t a, int32_t b) const { return a == b; }
};

}  // namespace

extern "C" int cub_reduce_by_key(void* temp, size_t* temp_bytes, const void* keys, const void* x,
                                 void* out_keys, void* out, void* count, int64_t n,
                                 cudaStream_t stream) {
  if (n > INT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceReduce::ReduceByKey(
      temp, *temp_bytes, static_cast<const int32_t*>(keys), static_cast<int32_t*>(out_keys),
      static_cast<const float*>(x), static_cast<float*>(out), static_cast<int32_t*>(count), Add{},
      static_cast<int32_t>(n), stream);
}

extern "C" int cub_scan_by_key(void* temp, size_t* temp_bytes, const void* keys, const void* x,
                               void* out, int64_t n, cudaStream_t stream) {
  if (n > INT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceScan::InclusiveSumByKey(
      temp, *temp_bytes, static_cast<const int32_t*>(keys), static_cast<const float*>(x),
      static_cast<float*>(out), static_cast<int32_t>(n), Same{}, stream);
}
