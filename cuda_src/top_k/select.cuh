// The first elements of a row by (key, position), or the one of a rank: a block for each row. Of
// long rows the first are listed (top_k/ranks.cuh), and are only put in order here.
//
// Algorithm  top_k/search.cuh finds where the first k end; another look brings them together in
//            shared memory, in any order, and a bitonic sort by (key, position) puts them in order.
// Bytes      A row is read once and then for each 11 bits in which its keys differ, mostly from
//            caches; launches: one; temporary storage: none.
// Bits       Elements are moved as they are, and their order is total.
#ifndef GPUALGO_TOP_K_SELECT_CUH
#define GPUALGO_TOP_K_SELECT_CUH

#include "top_k/search.cuh"

namespace gpualgo {

template <int block_threads_, int capacity_, int shared_bytes_>
struct SelectRowsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int capacity = capacity_;  // elements that a block sorts: a power of two
  static constexpr int shared_bytes = shared_bytes_;
};

struct SelectRowsParams {
  const unsigned char* rows;
  const unsigned char* listed;  // positions of the elements up to the rank, 64 bits each, or null
  unsigned char* values;
  unsigned char* positions;
  int64 row_items, rank;  // the last rank that is wanted, or the one
  uint64 flip;
};

// The elements of a row that are listed.
template <class Order, class Index>
struct ListedElements {
  using Ordered = typename Order::Ordered;
  RowElements<Order, Index> row;
  const uint64* positions;
  int64 count;

  __device__ Ordered key(Index i) const { return row.key(position(i)); }
  __device__ Index position(Index i) const { return Index(positions[i]); }
};

template <class Policy, int result, class Order, class Index>
struct SelectRow {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  static constexpr int threads = Policy::block_threads;
  using Search = RankSearch<threads, Ordered, Index>;

  struct Shared {
    typename Search::Shared search;
    alignas(16) Ordered keys[Policy::capacity];
    alignas(16) Index positions[Policy::capacity];
    Index num_taken;
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const SelectRowsParams& params;
  Shared& shared;
  const Key* row;

  __device__ void run() {
    const RowElements<Order, Index> all{row, params.row_items, Ordered(params.flip)};
    if constexpr (result == select_listed) {
      const int64 count = params.rank + 1;
      const auto* positions = reinterpret_cast<const uint64*>(params.listed) + blockIdx.x * count;
      run(ListedElements<Order, Index>{all, positions, count});
    } else {
      run(all);
    }
  }

  template <class Source>
  __device__ void run(const Source& source) {
    Search search{shared.search, Index(params.rank), Index(source.count)};
    if (threadIdx.x == 0) shared.num_taken = 0;
    search.find(source, result != select_one);
    ptx::syncthreads();
    const Cut<Ordered, Index> cut = search.cut;
    const bool has_positions = result != select_one || cut.position_mask != 0;
    Search::for_each(source, has_positions, [&](bool is_there, Index i, Ordered key, Index at) {
      if constexpr (result == select_one) {
        if (is_there && cut.agrees(key, at)) {
          reinterpret_cast<Key*>(params.values)[blockIdx.x] = row[i];
        }
      } else {
        take(key, at, is_there && cut.takes(key, at));
      }
    });
    if constexpr (result != select_one) {
      sort();
      write();
    }
  }

  __device__ void take(Ordered key, Index position, bool is_taken) {
    if (!ptx::any_sync(all_lanes, is_taken)) return;
    const uint32 lanes = ptx::ballot_sync(all_lanes, is_taken);
    const int first = ptx::ffs(lanes) - 1;
    Index begin = 0;
    if (int(threadIdx.x % warp_threads) == first) {
      begin = ptx::atom_add_relaxed_cta(&shared.num_taken, Index(ptx::popc(lanes)));
    }
    begin = shuffle(begin, first);
    if (!is_taken) return;
    const Index place = begin + ptx::popc(lanes & ptx::lanemask_le()) - 1;
    shared.keys[place] = key;
    shared.positions[place] = position;
  }

  // Puts in order what all threads have taken.
  __device__ void sort() {
    const int count = int(params.rank) + 1;
    int size = 2;
    while (size < count) size *= 2;
    for (int i = count + threadIdx.x; i < size; i += threads) {
      shared.keys[i] = ~Ordered(0);
      shared.positions[i] = ~Index(0);  // behind all others
    }
    ptx::syncthreads();
    for (int width = 2; width <= size; width *= 2) {
      for (int stride = width / 2; stride > 0; stride /= 2) {
        for (int i = threadIdx.x; i < size / 2; i += threads) {
          const int low = 2 * i - (i & (stride - 1));
          order(low, low + stride, (low & width) == 0);
        }
        // A warp orders the same elements at each of the lesser strides.
        if (stride > warp_threads || (stride == 1 && width > warp_threads)) {
          ptx::syncthreads();
        } else {
          ptx::syncwarp();
        }
      }
    }
  }
  __device__ void order(int low, int high, bool is_rising) {
    const Ordered a = shared.keys[low], b = shared.keys[high];
    const Index p = shared.positions[low], q = shared.positions[high];
    const bool is_behind = b < a || (b == a && q < p);
    if (is_behind != is_rising) return;
    shared.keys[low] = b;
    shared.keys[high] = a;
    shared.positions[low] = q;
    shared.positions[high] = p;
  }

  __device__ void write() const {
    const int64 count = params.rank + 1, begin = blockIdx.x * count;
    for (int i = threadIdx.x; i < int(count); i += threads) {
      const Index position = shared.positions[i];
      reinterpret_cast<Key*>(params.values)[begin + i] = row[position];
      reinterpret_cast<int64*>(params.positions)[begin + i] = int64(position);
    }
  }
};

// One block is enough to ask for: with more in mind the compiler spills registers.
template <class Policy, int result, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, 1)
    select_rows_kernel(const __grid_constant__ SelectRowsParams params) {
  using Work = SelectRow<Policy, result, Order, Index>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  const auto* rows = reinterpret_cast<const typename Order::Key*>(params.rows);
  Work{params, shared, rows + blockIdx.x * params.row_items}.run();
}

}  // namespace gpualgo

#endif
