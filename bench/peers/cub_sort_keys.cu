// CUB's radix sorts of keys behind C names; the protocol of temporary storage is that of cub.cu.
//
// Input and output are distinct and the input is kept, as in gpualgo. 32-bit sizes, as CUB advises
// below 2^32 items: its tiles are larger with them.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

namespace {

template <typename Key>
int sort(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n,
         cudaStream_t stream) {
  if (n > UINT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceRadixSort::SortKeys(temp, *temp_bytes, static_cast<const Key*>(in),
                                        static_cast<Key*>(out), static_cast<uint32_t>(n), 0,
                                        static_cast<int>(8 * sizeof(Key)), stream);
}

}  // namespace

#define GPUALGO_BENCH_SORT(name, Key)                                                       \
  extern "C" int name(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n, \
                      cudaStream_t stream) {                                                \
    return sort<Key>(temp, temp_bytes, in, out, n, stream);                                 \
  }

GPUALGO_BENCH_SORT(cub_sort_uint8, uint8_t)
GPUALGO_BENCH_SORT(cub_sort_uint16, uint16_t)
GPUALGO_BENCH_SORT(cub_sort_uint32, uint32_t)
GPUALGO_BENCH_SORT(cub_sort_uint64, uint64_t)
GPUALGO_BENCH_SORT(cub_sort_float32, float)
