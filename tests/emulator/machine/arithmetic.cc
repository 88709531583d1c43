// Arithmetic that a host compiler would round otherwise. The operands are volatile, so that nothing
// moves past the change of mode.
#include <fenv.h>

#include <cmath>

#include "kernel_calls.h"

namespace {

// fma rounds once, as the processor is told to.
template <class Float>
Float fma_down(Float a, Float b, Float c) {
  const int mode = fegetround();
  fesetround(FE_DOWNWARD);
  volatile Float x = a, y = b, z = c;
  volatile Float result = std::fma(x, y, z);
  fesetround(mode);
  return result;
}

}  // namespace

extern "C" {

float emu_fma_down_float(float a, float b, float c) { return fma_down(a, b, c); }
double emu_fma_down_double(double a, double b, double c) { return fma_down(a, b, c); }
}
