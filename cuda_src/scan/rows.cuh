// Scan of many lines whose elements are neighbours: a warp to several short lines, or to one.
//
// Algorithm  `width` lanes share a line; each has as many 16-byte vectors of it, side by side in
//            shared memory, an odd number so that the accesses of a warp fall into different banks.
//            A lane folds what it has, the lanes of a line scan their folds, a lane scans what it
//            has from there. Longer lines are walked in chunks, the next one on its way meanwhile.
//            No warp waits for another.
// Bytes      sizeof(T) + sizeof(A) per element; launches: one. Temporary storage: none.
// Operator   As scan/tiles.cuh. Padding between lines never reaches it.
// Bits       The number of lanes and of their elements follows from length and types alone.
#ifndef GPUALGO_SCAN_ROWS_CUH
#define GPUALGO_SCAN_ROWS_CUH

#include "parts/convert.cuh"
#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "scan/lines.cuh"

namespace gpualgo {

template <int block_threads_, int vectors_, int width_, int rounds_, bool is_long_, bool is_async_,
          int min_blocks_>
struct ScanRowsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int vectors = vectors_;     // of a lane; odd
  static constexpr int width = width_;         // lanes to a line
  static constexpr int rounds = rounds_;       // times 32 / width lines that a warp loads at once
  static constexpr bool is_long = is_long_;    // more than one chunk of a warp to a line
  static constexpr bool is_async = is_async_;  // loads past the registers (sm_80)
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
};

// Division of small numbers: both below 2^15.
struct SmallDivisor {
  uint32 value, magic;  // magic: 2^31 / value, rounded up

  __device__ int divide(int dividend) const {
    return int(ptx::umulhi(2 * uint32(dividend), magic));
  }
};

// Lines without gaps between the numbers of each leaf, at fixed distances, all forward or all
// reversed. They travel in units of in_bytes and out_bytes, of which lengths, addresses and
// distances are multiples; records' numbers stay apart in shared memory.
template <int in_bytes_, int out_bytes_, bool is_reversed_, int leaves = 1>
struct DenseRows {
  static constexpr int in_bytes = in_bytes_, out_bytes = out_bytes_;
  static constexpr bool is_reversed = is_reversed_;
  static constexpr bool is_dense = true;
  static constexpr int unroll = 4;
  int64 strides[2 * leaves];       // of lines in bytes: inputs, outputs
  SmallDivisor units[2 * leaves];  // of a line; unused if lines are long
};

// Lines of any strides, whose units are elements; a reversed scan is one whose strides are.
template <int leaves = 1>
struct SpacedRows {
  static constexpr bool is_reversed = false;
  static constexpr bool is_dense = false;
  static constexpr int unroll = 1;  // of loops over units: there is much to compute for each
  int64 strides[2 * leaves];        // of elements in bytes: inputs, outputs
  SmallDivisor units[1];            // of a line; unused if lines are long
  Layout<2 * leaves> lines;

  // Returns where an element's number lies, of the operands from number `operand` on.
  template <int operand, template <class> class Places, class T>
  __device__ Places<T> place(const Places<T>& from, int64 line, int64 element) const {
    int64 offsets[2 * leaves];
    lines.offsets(line, offsets);
    return moved(from, [&](auto leaf) {
      constexpr int i = operand + decltype(leaf)::value;
      return offsets[i] + element * strides[i];
    });
  }
};

template <class A, class T, class Access>
struct ScanRowsParams {
  ScanCommon<A, T> common;
  int64 num_lines, num_items;  // of all; of a line
  Access access;
};

template <class A, class T, int warps, int stages, int items>
struct ScanRowsShared {
  alignas(16) T elements[warps][stages][items];
  // Results take their elements' place where they fit.
  alignas(16) A results[sizeof(A) == sizeof(T) ? 1 : warps][sizeof(A) == sizeof(T) ? 1 : items];
};

// Folds this lane's `count` elements (at least one), vector by vector.
template <class S, class Op, class A, class Items>
__device__ inline A fold_vectors(const Items& stretch, int count) {
  Running<Op, A> running;
  auto append = [&](int v) {
    const auto pack = S::load(stretch, v);
    const int rest = count - v * S::vector_items;
    if (rest >= S::vector_items) {
      running.append(fold_pack<Op, A>(pack));
    } else {
#pragma unroll
      for (int i = 0; i < S::vector_items; ++i) {
        if (i < rest) running.append(convert<A>(pack.items[i]));
      }
    }
  };
  append(0);
  running.is_empty = false;  // which the compiler cannot see
#pragma unroll 1
  for (int v = 1; v * S::vector_items < count; ++v) append(v);
  return running.total;
}

// Writes the scan of this lane's `count` elements (at least one), which starts from `before`, to
// `results`. What it writes past them is padding.
template <class S, bool is_exclusive, class Op, class A, class Items, class Results>
__device__ inline void scan_vectors(const Items& stretch, const Results& results, int count,
                                    Running<Op, A> before) {
  auto scan = [&](int v) {
    const auto pack = S::load(stretch, v);
    const int rest = count - v * S::vector_items;
    Pack<A, S::vector_items> scanned;
    auto step = [&](int i) {
      if (is_exclusive) scanned.items[i] = before.total;
      before.append(convert<A>(pack.items[i]));
      if (!is_exclusive) scanned.items[i] = before.total;
    };
    if (rest >= S::vector_items) {
#pragma unroll
      for (int i = 0; i < S::vector_items; ++i) step(i);
    } else {
#pragma unroll
      for (int i = 0; i < S::vector_items; ++i) {
        if (i < rest) step(i);
      }
    }
    S::store(results, v, scanned);
  };
  scan(0);
  before.is_empty = false;  // which the compiler cannot see
#pragma unroll 1
  for (int v = 1; v * S::vector_items < count; ++v) scan(v);
}

// What one warp does with its lines.
template <class Policy, bool is_exclusive, class Op, class A, class T, class Access>
struct ScanRows {
  using S = Stretch<A, T, Policy::vectors, Access::is_reversed>;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr int width = Policy::width;
  static constexpr int groups = warp_threads / width;
  static constexpr int lines_per_warp = groups * Policy::rounds;
  static constexpr int pitch = width * S::lane_items;  // from line to line in shared memory
  static constexpr int stages = Policy::is_long ? 2 : 1;
  using Shared = ScanRowsShared<A, T, warps, stages, lines_per_warp * pitch>;

  const ScanRowsParams<A, T, Access>& params;
  Shared& shared;
  int64 first_line;
  int num_lines;  // of this warp
  int warp = threadIdx.x / warp_threads;
  int lane = threadIdx.x % warp_threads;

  // How far the element with the lowest address among `count` from number `begin` on lies behind
  // the line's first.
  __device__ static int64 lowest(int64 begin, int count) {
    return Access::is_reversed ? 1 - begin - count : begin;
  }
  // Where a line's `count` elements begin in shared memory.
  __device__ static int slot(int line, int count) {
    return line * pitch + (Access::is_reversed ? pitch - count : 0);
  }

  // Calls body(line, unit) for `units` of each line, neighbours by neighbouring lanes.
  template <int operand, class Body>
  __device__ void each_unit(int units, Body body) const {
#pragma unroll Access::unroll
    for (int at = lane; at < units * num_lines; at += warp_threads) {
      const int line = lines_per_warp == 1 ? 0 : params.access.units[operand].divide(at);
      body(line, at - line * units);
    }
  }
  // Calls body(shared, global) for each unit of `bytes` of one leaf of `count` elements of each
  // line, from number `begin` on.
  template <int operand, int bytes, class Number, class Address, class Body>
  __device__ void each_copy(Number* numbers, Address* address, int64 begin, int count,
                            Body body) const {
    constexpr int size = sizeof(Number);
    Address* lowest_number = address + lowest(begin, count) * size;
    each_unit<operand>(count * size / bytes, [&](int line, int unit) {
      body(reinterpret_cast<unsigned char*>(numbers + slot(line, count)) + unit * bytes,
           lowest_number + (first_line + line) * params.access.strides[operand] + unit * bytes);
    });
  }

  // Starts loading `count` elements of each line from number `begin` on.
  template <class Items>
  __device__ void load(const Items& elements, int64 begin, int count) const {
    if constexpr (Access::is_dense) {
      for_each_leaf<T>([&](auto leaf) {
        constexpr int i = decltype(leaf)::value;
        each_copy<i, Access::in_bytes>(
            numbers_of<i>(elements), params.common.input.at[i], begin, count,
            [](void* shared, const void* global) {
              copy_to_shared<Policy::is_async && Access::in_bytes >= 4, Access::in_bytes>(shared,
                                                                                          global);
            });
      });
    } else {
      each_unit<0>(count, [&](int line, int unit) {
        copy_element<Policy::is_async>(
            elements + slot(line, count) + unit,
            params.access.template place<0>(params.common.input, first_line + line, begin + unit));
      });
    }
    end_copies<Policy::is_async>();
  }

  template <class Results>
  __device__ void store(const Results& results, int64 begin, int count) const {
    if constexpr (Access::is_dense) {
      for_each_leaf<A>([&](auto leaf) {
        constexpr int i = decltype(leaf)::value;
        each_copy<num_leaves<T> + i, Access::out_bytes>(
            numbers_of<i>(results), params.common.output.at[i], begin, count,
            [](const void* shared, void* global) {
              store_pack(global, load_pack<uint8, Access::out_bytes>(shared));
            });
      });
    } else {
      each_unit<0>(count, [&](int line, int unit) {
        store_leaves(params.access.template place<num_leaves<T>>(params.common.output,
                                                                 first_line + line, begin + unit),
                     load_pack<A, 1>(results + slot(line, count) + unit));
      });
    }
  }

  // Scans `count` elements of each line in shared memory from `carry` on. If lines are long, the
  // carry then holds their fold.
  template <class Items, class Results>
  __device__ void scan(const Items& elements, const Results& results, int count,
                       Running<Op, A>& carry) const {
#pragma unroll 1
    for (int round = 0; round < Policy::rounds; ++round) {
      const int offset = round * S::warp_items;
      // Reversed, a warp's first lane has the last element of its last line.
      const int group = lane / width;
      const int line = round * groups + (Access::is_reversed ? groups - 1 - group : group);
      const int of_line = line < num_lines ? count : 0;
      const int rest = of_line - lane % width * S::lane_items;
      const int mine = rest < S::lane_items ? rest : S::lane_items;
      Running<Op, A> before = carry;
      if constexpr (width > 1) {
        A value{};
        if (mine > 0) value = fold_vectors<S, Op, A>(elements + offset, mine);
        const int active = (of_line + S::lane_items - 1) / S::lane_items;
        value = scan_group<width, Op>(value, active);
        const A before_lane = shuffle_up(value, 1);
        if (lane % width > 0 && mine > 0) before.append(before_lane);
        if constexpr (Policy::is_long) carry.append(shuffle(value, active - 1));
      }
      if (mine > 0)
        scan_vectors<S, is_exclusive>(elements + offset, results + offset, mine, before);
    }
  }

  // A stage or results as their elements lie there.
  template <class U>
  __device__ static auto items(U* first) {
    if constexpr (is_record<U> && Access::is_dense) {
      return ApartStretch<U, lines_per_warp * pitch>{reinterpret_cast<unsigned char*>(first)};
    } else {
      return first;
    }
  }

  __device__ T* stage(int number) const { return shared.elements[warp][number % stages]; }
  __device__ A* results_of(T* elements) const {
    if constexpr (sizeof(A) == sizeof(T)) {
      return reinterpret_cast<A*>(elements);
    } else {
      return shared.results[warp];
    }
  }

  __device__ void finish(T* elements, int64 begin, int count, Running<Op, A>& carry) const {
    const auto results = items(results_of(elements));
    ptx::syncwarp();
    scan(items(elements), results, count, carry);
    ptx::syncwarp();
    store(results, begin, count);
  }

  __device__ void short_lines(Running<Op, A> start) const {
    load(items(stage(0)), 0, int(params.num_items));
    wait_copies<Policy::is_async, 0>();
    finish(stage(0), 0, int(params.num_items), start);
  }

  __device__ void long_line(Running<Op, A> carry) const {
    auto count_at = [&](int64 begin) {
      const int64 rest = params.num_items - begin;
      return rest < pitch ? int(rest) : pitch;
    };
    load(items(stage(0)), 0, count_at(0));
    int number = 0;
    for (int64 begin = 0; begin < params.num_items; begin += pitch, ++number) {
      const int64 next = begin + pitch;
      if (next < params.num_items) {
        load(items(stage(number + 1)), next, count_at(next));
        wait_copies<Policy::is_async, 1>();
      } else {
        wait_copies<Policy::is_async, 0>();
      }
      finish(stage(number), begin, count_at(begin), carry);
      ptx::syncwarp();  // before the stage is loaded anew
    }
  }
};

template <class Policy, bool is_exclusive, class Op, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    scan_rows_kernel(const __grid_constant__ ParamsFor<Op, ScanRowsParams<A, T, Access>> params) {
  take_numbers<Op>(params);
  using Work = ScanRows<Policy, is_exclusive, Op, A, T, Access>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  const int64 first =
      (int64(blockIdx.x) * Work::warps + threadIdx.x / warp_threads) * Work::lines_per_warp;
  const int64 rest = params.num_lines - first;
  if (rest <= 0) return;
  const Work work{params, shared, first,
                  rest < Work::lines_per_warp ? int(rest) : Work::lines_per_warp};
  Running<Op, A> start;
  if (has_init(params.common)) start.append(read_init(params.common));
  if constexpr (Policy::is_long) {
    work.long_line(start);
  } else {
    work.short_lines(start);
  }
}

}  // namespace gpualgo

#endif
