// What a kernel takes, for comparing it with what the host packs (gpualgo/_cuda/parameters.py).
#ifndef GPUALGO_PARTS_PARAMETERS_CUH
#define GPUALGO_PARTS_PARAMETERS_CUH

namespace gpualgo {

template <class Kernel>
struct ParametersOf;

template <class Parameters>
struct ParametersOf<void (*)(Parameters)> {
  using type = Parameters;
};

}  // namespace gpualgo

#endif
