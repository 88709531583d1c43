// Rolling windows: y[i] = x[i] (+) … (+) x[i + window - 1] of each line.
//
// Algorithm  A block brings the elements of a tile's windows to shared memory. A thread takes spans
//            of neighbouring results, no longer than a window. Each window of a span is what is
//            left of its first span from an element on, then whole spans, which the windows of this
//            one share, then the elements behind them, one more for each window (as M. van Herk,
//            Pattern Recognition Letters 13, 1992, and J. Gil and M. Werman, IEEE PAMI 15, 1993,
//            with blocks of a span instead of a window).
// Bytes      2 sizeof(A) per element; launches: one; temporary storage: none.
// Operator   Associative. Elements are combined in order; it is never called on anything but
//            elements and its own results.
// Bits       The association depends on the window, the place in the line, and the type.
#ifndef GPUALGO_ROLLING_WINDOWS_CUH
#define GPUALGO_ROLLING_WINDOWS_CUH

#include "parts/fold.cuh"
#include "parts/layout.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int span_>
struct WindowsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;  // results of a thread
  static constexpr int span = span_;    // neighbours that it computes together; divides items
};

// Lines are a Layout or an EvenLayout, operand 0: the input, 1: the output.
template <template <int> class Lines>
struct WindowsParams {
  const unsigned char* input;
  unsigned char* output;
  int64 num_results, window;  // of a line; elements of a window, a span at least
  int64 in_step, out_step;    // bytes from one to the next
  Divisor tiles_per_line;
  Lines<2> lines;
};

template <class Policy, class Op, class A, template <int> class Lines>
struct Windows {
  static constexpr int threads = Policy::block_threads, span = Policy::span;
  static constexpr int tile = threads * Policy::items;

  const WindowsParams<Lines>& params;
  A* elements;  // of the tile's windows
  A* results;
  A* totals;  // of spans, if a window has several

  __device__ A& element(int i) const { return elements[padded(i)]; }

  __device__ void load(const unsigned char* from, int count) const {
#pragma unroll 8
    for (int i = threadIdx.x; i < count; i += threads) {
      element(i) = load_item<A>(from + i * params.in_step);
    }
  }

  __device__ void fold_spans(int count) const {
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += threads) {
      A total = element(i * span);
#pragma unroll
      for (int k = 1; k < span; ++k) total = Op::apply(total, element(i * span + k));
      totals[i] = total;
    }
  }

  // Computes the results of span number `index`, `count` of them.
  __device__ void compute(int index, int count, int window) const {
    const int first = index * span, whole = window / span, rest = window - whole * span;
    A tails[span];  // from each element of the first span to its end
    tails[span - 1] = element(first + span - 1);
#pragma unroll
    for (int k = span - 2; k >= 0; --k) tails[k] = Op::apply(element(first + k), tails[k + 1]);
    Running<Op, A> behind{A{}};
#pragma unroll 1
    for (int i = 1; i < whole; ++i) behind.append(totals[index + i]);
    const int next = first + whole * span;
#pragma unroll 1
    for (int i = 0; i < rest; ++i) behind.append(element(next + i));
#pragma unroll
    for (int k = 0; k < span; ++k) {
      if (k >= count) break;
      if (k > 0) behind.append(element(next + rest + k - 1));
      results[padded(first + k)] = behind.is_empty ? tails[k] : Op::apply(tails[k], behind.total);
    }
  }

  __device__ void run() const {
    const int64 line = params.tiles_per_line.divide(blockIdx.x);
    const int64 begin = (blockIdx.x - line * params.tiles_per_line.value) * tile;
    const int64 left = params.num_results - begin;
    const int count = left < tile ? int(left) : tile, window = int(params.window);
    int64 offsets[2];
    params.lines.offsets(line, offsets);
    const int num_elements = count + window - 1;
    load(params.input + offsets[0] + begin * params.in_step, num_elements);
    ptx::syncthreads();
    if (window >= 2 * span) {
      fold_spans(num_elements / span);
      ptx::syncthreads();
    }
#pragma unroll 1
    for (int k = 0; k < Policy::items / span; ++k) {
      const int index = int(threadIdx.x) * (Policy::items / span) + k;
      if (index * span < count) compute(index, count - index * span, window);
    }
    ptx::syncthreads();
    unsigned char* to = params.output + offsets[1] + begin * params.out_step;
#pragma unroll 8
    for (int i = threadIdx.x; i < count; i += threads) {
      store_pack(to + i * params.out_step, Pack<A, 1>{{results[padded(i)]}});
    }
  }
};

template <class Policy, class Op, class A, template <int> class Lines>
__global__ void __launch_bounds__(Policy::block_threads)
    rolling_windows_kernel(const __grid_constant__ ParamsFor<Op, WindowsParams<Lines>> params) {
  take_numbers<Op>(params);
  using Work = Windows<Policy, Op, A, Lines>;
  A* const elements = &ptx::dynamic_shared_memory<A>();
  const int num_elements = Work::tile + int(params.window) - 1;
  A* const results = elements + padded(num_elements);
  Work{params, elements, results, results + padded(Work::tile)}.run();
}

}  // namespace gpualgo

#endif
