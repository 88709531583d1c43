// Reduction by index: y[k] = init (+) all x[i] whose index is k, in their order.
//
// Algorithm  Privatised tables (as of a histogram: Shams and Kennedy, "Efficient histogram
//            algorithms for NVIDIA CUDA compatible devices", ICSPCS 2007). The input is cut into
//            shares of neighbours, a warp for each; it has a result for each index in shared
//            memory, and a mark that says whether there is one. Lanes of a row of 32 elements that
//            have the same index join theirs in log2 steps, each with the next one's (list ranking
//            by pointer jumping: Wyllie, "The complexity of parallel computations", 1979); the
//            first of them adds what they come to to the table. A second kernel joins the tables,
//            in their order.
// Bytes      sizeof(T) per element, and of each share twice a result and a mark for each index;
//            launches: two.
// Storage    A result and a mark for each index of each share.
// Operator   Associative. It need not commute, and has no identity to be padded with: it is never
//            called on anything but elements, starts and its own results.
// Bits       Shares depend on the lengths alone, and what is joined with what on them and on where
//            equal indices lie: the same on every run and every GPU.
// Indices    Those outside of the results are left out.
#ifndef GPUALGO_BY_INDEX_TABLES_CUH
#define GPUALGO_BY_INDEX_TABLES_CUH

#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/intrinsics.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"
#include "select/items.cuh"

namespace gpualgo {

template <int block_threads_, int rows_, bool overlaps_>
struct ByIndexPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int rows = rows_;  // of 32 elements that a warp loads at once
  static constexpr bool overlaps = overlaps_;
};

// Tables: those of shares one behind the other, and so in shared memory those of warps.
template <class A, class T, class Access>
struct ByIndexParams {
  Init<A> init;      // of results that have no start of their own
  Sources<T> input;  // the index, then the numbers of a value
  Targets<A> output;
  Sources<A> starts;  // of each result
  A* values;
  uint8* marks;
  int64 num_items, num_shares, share_items;
  int64 size, is_start;  // whether init begins each result, or is that of no element alone
  int64 value_bytes;     // of a warp's table
  int64 table_bytes;     // and with its marks
  int64 start_steps[num_leaves<A>], output_steps[num_leaves<A>];
  Access access;
};

template <class Policy, class Op, class K, class A, class T, class Access>
struct ByIndex {
  using Params = ByIndexParams<A, T, Access>;
  using E = Held<T>;
  static constexpr int rows = Policy::rows, row_items = warp_threads;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr uint32 nowhere = ~uint32(0);  // of indices that have no result

  const Params& params;
  A* values;
  uint8* marks;
  int lane = threadIdx.x % warp_threads;

  __device__ uint32 place_of(const E& element) const {
    const K index = leaf_of<0>(element);
    if constexpr (K(-1) < K(0)) {
      if (index < K(0)) return nowhere;
    }
    return uint64(index) < uint64(params.size) ? uint32(index) : nowhere;
  }
  __device__ static A value_of(const E& element) {
    A value;
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(value) = convert<Leaf<A, i>>(leaf_of<1 + i>(element));
    });
    return value;
  }

  // The next lane whose element is of the same index; -1: there is none.
  __device__ static int next_of(uint32 group, uint32 place) {
    const uint32 later = group & ~ptx::lanemask_le();
    return place == nowhere || later == 0 ? -1 : ptx::ffs(later) - 1;
  }

  // Joins a row's elements of one index, then with what the table has. All lanes call it.
  __device__ void add_row(uint32 place, uint32 group, A value) {
    int next = next_of(group, place);
#pragma unroll 1
    while (ptx::any_sync(all_lanes, next >= 0)) {
      const int from = next < 0 ? lane : next;
      const A other = shuffle(value, from);
      const int behind = shuffle(next, from);
      if (next >= 0) assign(value, Op::apply(value, other));
      next = next < 0 ? -1 : behind;
    }
    if (place != nowhere && (group & ptx::lanemask_le()) == 1u << lane) {
      A& entry = values[place];
      if (marks[place] != 0) {
        assign(value, Op::apply(entry, value));
      } else {
        marks[place] = 1;
      }
      assign(entry, value);
    }
    ptx::syncwarp();
  }

  // Goes through elements [begin, end).
  __device__ void fold(int64 begin, int64 end) {
#pragma unroll 1
    for (; begin < end; begin += rows * row_items) {
      E elements[rows];
      uint32 places[rows], groups[rows];
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const int64 i = begin + row * row_items + lane;
        assign(elements[row], E{});  // lanes hand on what nobody looks at
        if (i < end) {
          assign(elements[row], params.access.template load_one<T>(params.input, i));
        }
      }
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const int64 i = begin + row * row_items + lane;
        places[row] = i < end ? place_of(elements[row]) : nowhere;
        groups[row] = ptx::match_any_sync(all_lanes, places[row]);
      }
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        add_row(places[row], groups[row], value_of(elements[row]));
      }
    }
  }

  __device__ void run(int64 share) {
    uint4* words = reinterpret_cast<uint4*>(marks);
    for (int64 i = lane; i < (params.table_bytes - params.value_bytes) / 16; i += warp_threads) {
      words[i] = make_uint4(0, 0, 0, 0);
    }
    ptx::syncwarp();
    const int64 begin = share * params.share_items, end = begin + params.share_items;
    fold(begin, end < params.num_items ? end : params.num_items);
    for (int64 k = lane; k < params.size; k += warp_threads) {
      const uint8 mark = marks[k];
      params.marks[share * params.size + k] = mark;
      if (mark != 0) assign(params.values[share * params.size + k], values[k]);
    }
  }
};

template <class Policy, class Op, class K, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads) by_index_fold_kernel(
    const __grid_constant__ ParamsFor<Op, ByIndexParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  take_numbers<Op>(params);
  using Work = ByIndex<Policy, Op, K, A, T, Access>;
  const int warp = threadIdx.x / warp_threads, warps = blockDim.x / warp_threads;
  const int64 share = int64(blockIdx.x) * warps + warp;
  if (share >= params.num_shares) return;
  auto* table = &ptx::dynamic_shared_memory<unsigned char>() + warp * params.table_bytes;
  Work{params, reinterpret_cast<A*>(table), table + params.value_bytes}.run(share);
}

// A block joins the tables of 32 neighbouring indices, a lane for each: each warp those of some
// neighbouring shares, then one warp what these come to.
template <class Policy, bool has_starts, class Op, class K, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads) by_index_join_kernel(
    const __grid_constant__ ParamsFor<Op, ByIndexParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_wait();
  take_numbers<Op>(params);
  constexpr int warps = Policy::block_threads / warp_threads;
  struct Shared {
    A values[warps][warp_threads];
    bool marks[warps][warp_threads];
  };
  auto& shared = ptx::shared_memory<Shared>();
  const int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;
  const int64 k = int64(blockIdx.x) * warp_threads + lane;
  const int64 each = (params.num_shares + warps - 1) / warps, begin = warp * each;
  const int64 end = begin + each < params.num_shares ? begin + each : params.num_shares;
  Running<Op, A> total{A{}};
  if (k < params.size) {
    constexpr int loads = 4;
#pragma unroll 1
    for (int64 share = begin; share < end; share += loads) {
      uint8 marks[loads];
      A values[loads];
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        marks[j] = share + j < end ? params.marks[(share + j) * params.size + k] : 0;
      }
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        assign(values[j], A{});
        if (marks[j] != 0) assign(values[j], params.values[(share + j) * params.size + k]);
      }
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (marks[j] != 0) total.append(values[j]);
      }
    }
  }
  assign(shared.values[warp][lane], total.total);
  shared.marks[warp][lane] = !total.is_empty;
  ptx::syncthreads();
  if (warp != 0 || k >= params.size) return;
#pragma unroll 1
  for (int w = 1; w < warps; ++w) {
    if (shared.marks[w][lane]) total.append(shared.values[w][lane]);
  }
  A start;
  if constexpr (has_starts) {
    assign(start, load_element(moved(params.starts, [&](auto leaf) {
             return k * params.start_steps[decltype(leaf)::value];
           })));
  } else {
    memcpy(&start, params.init.value, sizeof(A));
  }
  if (total.is_empty) {
    assign(total.total, start);
  } else if (has_starts || params.is_start) {
    assign(total.total, Op::apply(start, total.total));
  }
  store_element(moved(params.output,
                      [&](auto leaf) { return k * params.output_steps[decltype(leaf)::value]; }),
                total.total);
}

}  // namespace gpualgo

#endif
