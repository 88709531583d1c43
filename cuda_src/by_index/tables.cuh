// Reduction by index: y[k] = init (+) all x[i] whose index is k, in their order.
//
// Algorithm  Privatised tables (as of a histogram: Shams and Kennedy, "Efficient histogram
//            algorithms for NVIDIA CUDA compatible devices", ICSPCS 2007). A warp reads a share of
//            neighbours. Its table in shared memory has a result for each index, and a mark: the
//            last row of 32 elements in which there was the index. By exchanging marks lanes learn
//            whether others of the row have their index. These join their elements in log2 steps
//            (list ranking by pointer jumping: Wyllie, "The complexity of parallel computations",
//            1979); the first adds the result to the table. A second kernel joins tables in order,
//            a third the results of many. For more results see by_index/buckets.cuh.
// Bytes      sizeof(T) per element, and of each table twice a result and a mark for each index;
//            launches: two or three.
// Storage    A result and a mark for each index of each table, and of each group of them.
// Operator   Associative. It need not commute, and has no identity to be padded with: it is never
//            called on anything but elements, starts and its own results.
// Bits       Fixed by lengths and by where equal indices lie: the same on every run and every GPU.
// Indices    Those outside of the results are left out.
#ifndef GPUALGO_BY_INDEX_TABLES_CUH
#define GPUALGO_BY_INDEX_TABLES_CUH

#include "by_index/buckets.cuh"
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
  static constexpr int rows = rows_;  // of 32 elements, or tables, that a warp loads at once
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
  A* group_values;  // of groups of tables, if there are many
  uint8* group_marks;
  uint8* present;  // whether a result has elements; null: nobody asks
  Buckets buckets;
  int64 num_items, num_tables, group, num_groups, num_columns;
  int64 num_results, size;  // in all, and of a table
  int64 is_start;           // whether init begins each result, or is that of no element alone
  int64 value_bytes;        // of a warp's table
  int64 table_bytes;        // and with its marks
  int64 start_steps[num_leaves<A>], output_steps[num_leaves<A>];
  Access access;
};

// A warp's results in shared memory.
template <class Policy, class Op, class A>
struct WarpTable {
  static constexpr int rows = Policy::rows, row_items = warp_threads, few = 4;
  static constexpr uint32 nowhere = ~uint32(0);  // of elements that no result is for

  A* values;
  uint32* marks;  // the last row in which there was the index
  int lane = threadIdx.x % warp_threads;
  uint32* spare;  // this lane's own, for rows in which it marks nothing

  // All lanes call it. params.table_bytes are params.value_bytes, then the marks'.
  template <class Params>
  __device__ WarpTable(unsigned char* table, const Params& params)
      : values(reinterpret_cast<A*>(table)),
        marks(reinterpret_cast<uint32*>(table + params.value_bytes)) {
    spare = marks + (params.table_bytes - params.value_bytes) / 4 - warp_threads + lane;
    for (int64 i = lane; i < (params.table_bytes - params.value_bytes) / 16; i += warp_threads) {
      reinterpret_cast<uint4*>(marks)[i] = make_uint4(0, 0, 0, 0);
    }
    ptx::syncwarp();
  }

  // The lanes with this one's place; those `again` are not alone. If none of them is a head, they
  // are neighbours, and a lane that is no head also gets those before it. Few need no match.
  __device__ uint32 group_of(uint32 place, uint32 again, uint32 heads) const {
    const uint32 mine = 1u << lane, later = heads & ~ptx::lanemask_le();
    if ((again & heads) == 0) return ((later & -later) - 1) & (heads & mine ? -mine : all_lanes);
    if (ptx::popc(again) > few) return ptx::match_any_sync(all_lanes, place);
    uint32 group = mine;
    while (again != 0) {
      const uint32 lanes =
          ptx::ballot_sync(all_lanes, shuffle(place, ptx::ffs(again) - 1) == place);
      if (lanes >> lane & 1) group = lanes;
      again &= ~lanes;
    }
    return group;
  }

  // Adds rows of elements in their order. All lanes call it. The rows' numbers follow `number`,
  // which is no row's yet. Rows take each step together, and so wait for its answers once.
  template <class Place, int count>
  __device__ void add(uint32 number, const Place (&places)[count], A (&items)[count]) {
    const uint32 mine = 1u << lane, up_to = ptx::lanemask_le();
    uint32 heads[count], before[count];  // before: the last row in which there was the index
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const uint32 place = uint32(places[i]), row = number + 1 + i;
      // Of neighbours with one index the first is enough, and others would wait for it.
      const bool is_there = place != nowhere, is_head = shuffle_up(place, 1) != place || lane == 0;
      heads[i] = ptx::ballot_sync(all_lanes, is_head || !is_there);
      before[i] = ptx::atom_exch_relaxed_cta(is_head && is_there ? marks + place : spare, row);
      ptx::syncwarp();  // later rows find this one's marks
    }
    uint32 news[count], again[count], groups[count], any_again = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      news[i] = ptx::ballot_sync(all_lanes, before[i] == 0) & heads[i];
      again[i] = ptx::ballot_sync(all_lanes, before[i] == number + 1 + i) | ~heads[i];
      any_again |= again[i];
      groups[i] = uint32(places[i]) != nowhere ? mine : 0;
    }
    if (any_again != 0) {
      int next[count];  // of a lane's group; -1: none, as for the last lane, which -1 leads to
#pragma unroll
      for (int i = 0; i < count; ++i) {
        next[i] = -1;
        if (again[i] == 0) continue;
        const uint32 group = group_of(uint32(places[i]), again[i], heads[i]);
        if (groups[i] != 0) groups[i] = group;
        next[i] = ptx::ffs(groups[i] & ~up_to) - 1;
      }
      bool goes_on;
      do {
        goes_on = false;
#pragma unroll
        for (int i = 0; i < count; ++i) {
          const A other = shuffle(items[i], next[i]);
          if (next[i] >= 0) assign(items[i], Op::apply(items[i], other));
          next[i] = shuffle(next[i], next[i]);
          goes_on |= next[i] >= 0;
        }
      } while (ptx::any_sync(all_lanes, goes_on));
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const bool is_first = (groups[i] & up_to) == mine;
      const bool is_old = (is_first ? groups[i] & news[i] : mine) == 0;
      A& entry = values[uint32(places[i])];
      if (is_old) assign(items[i], Op::apply(entry, items[i]));
      if (is_first) assign(entry, items[i]);
      ptx::syncwarp();
    }
  }

  // Writes the table of a share.
  __device__ void write(int64 share, const int64& size, A* all_values, uint8* all_marks) const {
    for (int64 k = lane; k < size; k += warp_threads) {
      const bool is_there = marks[k] != 0;
      all_marks[share * size + k] = is_there;
      if (is_there) assign(all_values[share * size + k], values[k]);
    }
  }
};

template <class Policy, class Op, class K, class A, class T, class Access>
struct ByIndex : WarpTable<Policy, Op, A> {
  using Params = ByIndexParams<A, T, Access>;
  using Table = WarpTable<Policy, Op, A>;
  using E = Held<T>;
  using Word = UintFor<8 * sizeof(K)>;
  using Table::lane, Table::nowhere, Table::row_items, Table::rows;

  const Params& params;
  Word first_index;  // that of the table's first result

  __device__ ByIndex(unsigned char* table, const Params& params_, int64 bucket)
      : Table(table, params_),
        params(params_),
        first_index(Word(params_.buckets.first_index(bucket)) +
                    Word(K(params_.buckets.first_key()))) {}

  // A negative index is a large number.
  __device__ uint32 place_of(const E& element) const {
    const Word place = Word(leaf_of<0>(element)) - first_index;
    return place < Word(params.size) ? uint32(place) : nowhere;
  }
  __device__ static A value_of(const E& element) {
    A value;
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(value) = convert<Leaf<A, i>>(leaf_of<1 + i>(element));
    });
    return value;
  }

  // Loads this lane's elements first, first + 32, ... of which so many numbers are below `left`.
  __device__ void load(int64 first, int32 left, E (&elements)[rows]) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      assign(elements[row], E{});  // lanes hand on what nobody looks at
      if (row * row_items < left) {
        assign(elements[row],
               params.access.template load_one<T>(params.input, first + row * row_items));
      }
    }
  }

  // Goes through `count` elements from `begin` on.
  __device__ void fold(int64 begin, int32 count) {
    E elements[rows];
    begin += lane;
    load(begin, count - lane, elements);
    uint32 number = 0;
#pragma unroll 1
    for (; count > 0; number += rows) {
      uint32 places[rows];
      A items[rows];
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        places[row] = row * row_items < count - lane ? place_of(elements[row]) : nowhere;
        assign(items[row], value_of(elements[row]));
      }
      begin += rows * row_items;
      count -= rows * row_items;
      load(begin, count - lane, elements);  // on its way while these are added
      this->add(number, places, items);
    }
  }
};

template <class Policy, class Op, class K, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads) by_index_fold_kernel(
    const __grid_constant__ ParamsFor<Op, ByIndexParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  take_numbers<Op>(params);
  if (params.buckets.are_useless()) return;
  // By a shuffle, so that the compiler knows that lanes agree.
  const int warp = shuffle(threadIdx.x / warp_threads, 0), warps = blockDim.x / warp_threads;
  const uint32 number = blockIdx.x * warps + warp;
  if (number >= params.num_tables) return;
  const int64 bucket = params.buckets.bucket_of(number);
  const Span elements = params.buckets.elements_of(bucket, number - bucket, params.num_items);
  if (elements.is_empty()) return;
  auto* table = &ptx::dynamic_shared_memory<unsigned char>() + warp * params.table_bytes;
  ByIndex<Policy, Op, K, A, T, Access> work(table, params, bucket);
  work.fold(elements.begin, shuffle(int32(elements.end - elements.begin), 0));
  work.write(number, params.size, params.values, params.marks);
}

// A block joins some tables at 32 neighbouring indices, a lane for each: each warp those of some
// neighbours, then one warp what these come to. A warp alone joins few in the same order.
template <class Policy, class Op, class A>
struct TableJoin {
  static constexpr int warps = Policy::block_threads / warp_threads, loads = Policy::rows;
  struct Shared {
    A values[warps][warp_threads];
    bool marks[warps][warp_threads];
    bool are_many[warps];
  };

  const A* values;
  const uint8* marks;
  int64 size;

  // Returns what tables come to at index k.
  __device__ Running<Op, A> fold(const Span& tables, int64 k) const {
    Running<Op, A> total{A{}};
    int32 count = k < size ? int32(tables.end - tables.begin) : 0;
    const uint32 step = uint32(size);  // less than 2^16, as tables fit shared memory
#pragma unroll 1
    for (int64 first = tables.begin * size + k; count > 0; count -= loads, first += loads * step) {
      bool loaded[loads];
      A items[loads];
#pragma unroll
      for (int j = 0; j < loads; ++j) loaded[j] = j < count && marks[first + j * step] != 0;
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        assign(items[j], A{});
        if (loaded[j]) assign(items[j], values[first + j * step]);
      }
#pragma unroll
      for (int j = 0; j < loads; ++j) {
        if (loaded[j]) total.append(items[j]);
      }
    }
    return total;
  }

  // A warp's part of tables.
  __device__ static Span part_of(const Span& tables) {
    const int64 each = (tables.end - tables.begin + warps - 1) / warps;
    const int64 begin = tables.begin + threadIdx.x / warp_threads * each, end = begin + each;
    return {begin, end < tables.end ? end : tables.end};
  }

  // Returns in the first warp what all warps' totals come to.
  __device__ static Running<Op, A> joined(Shared& shared, Running<Op, A> total) {
    const int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;
    assign(shared.values[warp][lane], total.total);
    shared.marks[warp][lane] = !total.is_empty;
    ptx::syncthreads();
    if (warp == 0) {
#pragma unroll 1
      for (int w = 1; w < warps; ++w) {
        if (shared.marks[w][lane]) total.append(shared.values[w][lane]);
      }
    }
    return total;
  }

  __device__ Running<Op, A> run(Shared& shared, const Span& tables, int64 k) const {
    return joined(shared, fold(part_of(tables), k));
  }
};

// Makes one table of each `group` of them.
template <class Policy, class Op, class K, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads) by_index_group_kernel(
    const __grid_constant__ ParamsFor<Op, ByIndexParams<A, T, Access>> params) {
  ptx::overlap_both<Policy::overlaps>();
  take_numbers<Op>(params);
  if (params.buckets.are_useless()) return;
  using Join = TableJoin<Policy, Op, A>;
  auto& shared = ptx::shared_memory<typename Join::Shared>();
  const int64 columns = params.num_columns, number = blockIdx.x / uint32(columns);
  const int64 k = int64(blockIdx.x % uint32(columns)) * warp_threads + threadIdx.x % warp_threads;
  const int64 begin = number * params.group, end = begin + params.group;
  const Running<Op, A> total = Join{params.values, params.marks, params.size}.run(
      shared, {begin, end < params.num_tables ? end : params.num_tables}, k);
  if (threadIdx.x >= warp_threads || k >= params.size) return;
  params.group_marks[number * params.size + k] = !total.is_empty;
  if (!total.is_empty) assign(params.group_values[number * params.size + k], total.total);
}

// Writes the results: of the groups of tables, if there are any, else of the tables.
template <class Policy, bool has_starts, class Op, class K, class A, class T, class Access>
struct ByIndexJoin {
  using Params = ByIndexParams<A, T, Access>;

  const Params& params;

  __device__ Span tables_of(int64 column) const {
    if (column >= params.num_columns) return {0, 0};
    if (params.num_groups != 0) return {0, params.num_groups};
    return params.buckets.tables_of(column * warp_threads, params.num_tables);
  }

  __device__ void write(int64 column, Running<Op, A> total) const {
    const int64 k = column * warp_threads + threadIdx.x % warp_threads;
    if (k >= params.num_results) return;
    if (params.present) params.present[k] = !total.is_empty;
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

  // A warp writes a column of few tables, the block one of many.
  __device__ void run() const {
    using Join = TableJoin<Policy, Op, A>;
    auto& shared = ptx::shared_memory<typename Join::Shared>();
    const int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;
    const bool has_groups = params.num_groups != 0;
    const Join join{has_groups ? params.group_values : params.values,
                    has_groups ? params.group_marks : params.marks, params.size};
    const auto column_of = [](int w) { return int64(blockIdx.x) + int64(w) * gridDim.x; };
    const auto place_of = [&](int64 column) {
      const int64 k = column * warp_threads + lane;
      return k - params.buckets.first_index(k >> params.buckets.shift);
    };
    bool writes = true;
#pragma unroll 1
    for (int w = -1; w < Join::warps; ++w) {
      const bool is_alone = w < 0;
      if (!is_alone && !shared.are_many[w]) continue;
      const int64 column = column_of(is_alone ? warp : w);
      Span tables = tables_of(column);
      if (!is_alone) {
        tables = Join::part_of(tables);
        writes = warp == 0;
      } else if (tables.end - tables.begin > Join::warps) {
        tables = {0, 0};
        writes = false;
      }
      if (is_alone && lane == 0) shared.are_many[warp] = !writes;
      Running<Op, A> total = join.fold(tables, place_of(column));
      if (!is_alone) assign(total, Join::joined(shared, total));
      if (writes) write(column, total);
      ptx::syncthreads();
    }
  }
};

template <class Policy, bool has_starts, class Op, class K, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads) by_index_join_kernel(
    const __grid_constant__ ParamsFor<Op, ByIndexParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_wait();
  take_numbers<Op>(params);
  if (params.buckets.are_useless()) return;
  ByIndexJoin<Policy, has_starts, Op, K, A, T, Access>{params}.run();
}

}  // namespace gpualgo

#endif
