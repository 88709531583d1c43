// CUB's histograms behind C names, with 32-bit counters; the protocol of temporary storage is that
// of cub.cu. CUB itself takes 32-bit offsets where the samples' bytes allow it.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_histogram.cuh>

namespace {

template <typename Sample, typename Level>
int even(void* temp, size_t* temp_bytes, const void* samples, void* counts, int64_t n, int bins,
         Level lower, Level upper, cudaStream_t stream) {
  return cub::DeviceHistogram::HistogramEven(temp, *temp_bytes, static_cast<const Sample*>(samples),
                                             static_cast<int32_t*>(counts), bins + 1, lower, upper,
                                             n, stream);
}

}  // namespace

extern "C" int cub_histogram_float32(void* temp, size_t* temp_bytes, const void* samples,
                                     void* counts, int64_t n, int bins, int upper,
                                     cudaStream_t stream) {
  return even<float, float>(temp, temp_bytes, samples, counts, n, bins, 0.0f,
                            static_cast<float>(upper), stream);
}

extern "C" int cub_histogram_uint8(void* temp, size_t* temp_bytes, const void* samples,
                                   void* counts, int64_t n, int bins, int upper,
                                   cudaStream_t stream) {
  return even<uint8_t, int>(temp, temp_bytes, samples, counts, n, bins, 0, upper, stream);
}

extern "C" int cub_histogram_edges_float32(void* temp, size_t* temp_bytes, const void* samples,
                                           const void* edges, void* counts, int64_t n, int bins,
                                           cudaStream_t stream) {
  return cub::DeviceHistogram::HistogramRange(temp, *temp_bytes, static_cast<const float*>(samples),
                                              static_cast<int32_t*>(counts), bins + 1,
                                              static_cast<const float*>(edges), n, stream);
}
