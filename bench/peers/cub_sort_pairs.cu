// CUB's radix sorts of pairs and of rows behind C names; apart from cub_sort_keys.cu so that the
// two compile at once. The protocol of temporary storage is that of cub.cu.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

namespace {

template <typename Key, typename Value>
int sort(void* temp, size_t* temp_bytes, const void* keys, const void* values, void* out_keys,
         void* out_values, int64_t n, cudaStream_t stream) {
  if (n > UINT32_MAX) return cudaErrorInvalidValue;
  return cub::DeviceRadixSort::SortPairs(
      temp, *temp_bytes, static_cast<const Key*>(keys), static_cast<Key*>(out_keys),
      static_cast<const Value*>(values), static_cast<Value*>(out_values), static_cast<uint32_t>(n),
      0, static_cast<int>(8 * sizeof(Key)), stream);
}

}  // namespace

#define GPUALGO_BENCH_SORT_PAIRS(name, Key, Value)                                            \
  extern "C" int name(void* temp, size_t* temp_bytes, const void* keys, const void* values,   \
                      void* out_keys, void* out_values, int64_t n, cudaStream_t stream) {     \
    return sort<Key, Value>(temp, temp_bytes, keys, values, out_keys, out_values, n, stream); \
  }

GPUALGO_BENCH_SORT_PAIRS(cub_sort_pairs_uint32_uint32, uint32_t, uint32_t)
GPUALGO_BENCH_SORT_PAIRS(cub_sort_pairs_uint64_uint64, uint64_t, uint64_t)

// Row r is in[starts[r]] to in[starts[r + 1] - 1].
extern "C" int cub_sort_rows_float32(void* temp, size_t* temp_bytes, const void* in,
                                     const void* starts, void* out, int64_t n, int64_t rows,
                                     cudaStream_t stream) {
  const int64_t* first = static_cast<const int64_t*>(starts);
  return cub::DeviceSegmentedSort::SortKeys(temp, *temp_bytes, static_cast<const float*>(in),
                                            static_cast<float*>(out), n, rows, first, first + 1,
                                            stream);
}
