// CUB's merge sort behind C names; the protocol of temporary storage is that of cub.cu. Its keys
// are sorted where they are: what is timed is a sort into other memory, as ours is.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_merge_sort.cuh>

namespace {

struct Less {
  template <typename T>
  __device__ bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

template <typename T>
int sort(void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n,
         cudaStream_t stream) {
  return cub::DeviceMergeSort::StableSortKeysCopy(temp, *temp_bytes, static_cast<const T*>(in),
                                                  static_cast<T*>(out), n, Less{}, stream);
}

}  // namespace

extern "C" int cub_merge_sort_float32(void* temp, size_t* temp_bytes, const void* in, void* out,
                                      int64_t n, cudaStream_t stream) {
  return sort<float>(temp, temp_bytes, in, out, n, stream);
}
extern "C" int cub_merge_sort_int32(void* temp, size_t* temp_bytes, const void* in, void* out,
                                    int64_t n, cudaStream_t stream) {
  return sort<int32_t>(temp, temp_bytes, in, out, n, stream);
}
