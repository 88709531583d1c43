// CUB's selections and runs behind C names; the protocol of temporary storage is that of cub.cu.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>

namespace {

struct BelowHalf {
  __device__ bool operator()(float a) const { return a < 0.5f; }
};

}  // namespace

extern "C" int cub_select_if(void* temp, size_t* temp_bytes, const void* in, void* out, void* count,
                             int64_t n, cudaStream_t stream) {
  return cub::DeviceSelect::If(temp, *temp_bytes, static_cast<const float*>(in),
                               static_cast<float*>(out), static_cast<int64_t*>(count), n,
                               BelowHalf{}, stream);
}

extern "C" int cub_select_flagged(void* temp, size_t* temp_bytes, const void* in, const void* flags,
                                  void* out, void* count, int64_t n, cudaStream_t stream) {
  return cub::DeviceSelect::Flagged(temp, *temp_bytes, static_cast<const float*>(in),
                                    static_cast<const bool*>(flags), static_cast<float*>(out),
                                    static_cast<int64_t*>(count), n, stream);
}

// What is not kept stands behind, in the opposite order.
extern "C" int cub_partition_if(void* temp, size_t* temp_bytes, const void* in, void* out,
                                void* count, int64_t n, cudaStream_t stream) {
  return cub::DevicePartition::If(temp, *temp_bytes, static_cast<const float*>(in),
                                  static_cast<float*>(out), static_cast<int64_t*>(count), n,
                                  BelowHalf{}, stream);
}

extern "C" int cub_unique(void* temp, size_t* temp_bytes, const void* in, void* out, void* count,
                          int64_t n, cudaStream_t stream) {
  return cub::DeviceSelect::Unique(temp, *temp_bytes, static_cast<const int32_t*>(in),
                                   static_cast<int32_t*>(out), static_cast<int64_t*>(count), n,
                                   stream);
}

extern "C" int cub_encode(void* temp, size_t* temp_bytes, const void* in, void* out, void* lengths,
                          void* count, int64_t n, cudaStream_t stream) {
  if (n > INT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceRunLengthEncode::Encode(
      temp, *temp_bytes, static_cast<const int32_t*>(in), static_cast<int32_t*>(out),
      static_cast<int32_t*>(lengths), static_cast<int32_t*>(count), static_cast<int32_t>(n),
      stream);
}
