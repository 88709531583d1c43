// The elements of some ranks of rows, of what was kept of a long row, or of a sample of it
// (top_k/sample.cuh), by all blocks of the GPU in one launch.
//
// Algorithm  Radix selection, the most significant digit first (Zhang, Naruse, Li and Wang,
//            "Parallel Top-K Algorithms on GPU", SC 2023, doi:10.1145/3581784.3607062), as
//            top_k/search.cuh does it for a block: the blocks of a rank count 11 bits of the keys,
//            then of the positions, of those that agree so far. Each block adds its counts to those
//            of all, waits for the others, and finds the digit that the rank falls into. Bits that
//            the bounds share are known. It ends as soon as one element is left, or, where all up
//            to it are wanted, once those are left that are wanted.
// Bytes      sizeof(Key) of each element for each digit, and once more at the end; launches: one,
//            of blocks that run at the same time, as they wait for each other. Neighbours among the
//            blocks have different ranks.
// Storage    A state and three times 2048 counts for each rank, zero before and after.
// Bits       Counts are integers, and the order of (key, position) is total. What is listed comes
//            in any order, and is put in one by who reads it.
#ifndef GPUALGO_TOP_K_RANKS_CUH
#define GPUALGO_TOP_K_RANKS_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/waiting.cuh"
#include "top_k/sample.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

// What the blocks of a rank share.
struct RankState {
  uint64 num_taken;    // elements that are listed
  uint32 num_counted;  // blocks that have added their counts, of all digits
  uint32 num_done;     // blocks that are done
};

constexpr int most_bounds = 2 * most_ranks;

struct RanksParams {
  const unsigned char* rows;
  const unsigned char* kept_items;  // of the one row, or its sample; null: none are kept
  const unsigned char* kept_positions;
  SampleBounds* bounds;  // of what is kept; those that are set
  RankState* states;
  unsigned char* counts;
  unsigned char* result;  // the element of each rank, or positions
  int64 row_items, num_rows, num_ranks, num_samples;
  int64 rank_step, row_step;  // bytes from a result to that of the next rank, and row
  uint64 flip;
  // Of a sample: first and last bound of each list. Before the first, behind the last: no bound.
  int64 ranks[most_bounds];
  int64 lists[most_ranks];                        // the list that holds a rank
  int64 begin[most_ranks], capacity[most_ranks];  // of lists
};

template <int block_threads_, int min_blocks_, bool overlaps_>
struct RanksPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int min_blocks = min_blocks_;
  static constexpr bool overlaps = overlaps_;  // the next kernel may be launched early, and waits
};

// By one thread for each bound.
__device__ inline void set_bound(SampleBounds& bounds, bool is_last, uint64 key, uint64 position) {
  (is_last ? bounds.last_key : bounds.first_key) = key;
  (is_last ? bounds.last_position : bounds.first_position) = position;
  (is_last ? bounds.num_kept : bounds.num_before) = 0;
}

// A row's elements, or some of them: one program for both, and no branch where keys are
// read, which would be read one by one.
template <class Order, class Index>
struct LeftElements {
  using Ordered = typename Order::Ordered;
  RowElements<Order, Index> row;
  const typename Order::Key* items = row.keys;
  const Index* positions = nullptr;  // null: these are all
  int64 first = 0, count = row.count;

  __device__ Ordered key(Index i) const { return row.ordered(items[first + i]); }
  __device__ Index position(Index i) const {
    Index at = Index(first) + i;
    if (positions != nullptr) at = positions[at];
    return at;
  }

  // Goes on to what was kept, if the element of a rank is there; returns its rank there.
  __device__ int64 take(const SampleBounds& bounds, const unsigned char* kept_items,
                        const unsigned char* kept_positions, int64 rank, int64 capacity) {
    if (!bounds.holds(rank, capacity)) return rank;
    go_on(kept_items, kept_positions, int64(bounds.num_kept));
    return rank - int64(bounds.num_before);
  }
  __device__ void go_on(const unsigned char* new_items, const unsigned char* new_positions,
                        int64 number) {
    items = reinterpret_cast<const typename Order::Key*>(new_items);
    positions = reinterpret_cast<const Index*>(new_positions);
    count = number;
  }
  // Leaves one of equal parts, of which there are a power of two.
  __device__ void share(int64 number, uint32 parts) {
    const int64 most = (count + parts - 1) >> (31 - ptx::clz(parts));
    first += number * most;
    const int64 rest = count - number * most;
    count = rest < 0 ? 0 : rest < most ? rest : most;
  }
};

template <class Policy, int result_kind, class Order, class Index>
struct Ranks {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  static constexpr int threads = Policy::block_threads;
  static constexpr bool takes_all = result_kind == select_listed;
  static constexpr int tables = 3;  // of counts: added to, read, and cleared
  using Search = RankSearch<threads, Ordered, Index>;

  struct Shared {
    typename Search::Shared search;
    bool is_last;
  };

  const RanksParams& params;
  Shared& shared;
  uint32 groups = uint32(params.num_rows * params.num_ranks);  // of blocks: one for each result
  uint32 group = blockIdx.x % groups, part = blockIdx.x / groups, parts = gridDim.x / groups;
  uint32 number = group % uint32(params.num_ranks), row = group / uint32(params.num_ranks);
  RankState& state = params.states[group];
  Index* counts = reinterpret_cast<Index*>(params.counts) + group * (tables * select_bins);
  unsigned char* result = params.result + number * params.rank_step + row * params.row_step;
  LeftElements<Order, Index> left{
      RowElements<Order, Index>{reinterpret_cast<const Key*>(params.rows) + row * params.row_items,
                                params.row_items, Ordered(params.flip)}};
  Search search{shared.search, 0, 0};
  uint32 shift = Order::bits;  // the bits of a word that are not known yet
  uint32 num_digits = 0;
  bool by_position = false;

  __device__ void run() {
    if (!Search::agreed(begin())) return;
#pragma unroll 1
    while (Search::agreed(!is_found())) choose_digit();
    write();
    clear();
  }

 private:
  // Returns whether there is an element of the rank.
  __device__ bool begin() {
    int64 rank = params.ranks[number];
    if constexpr (result_kind == select_bound) {
      if (rank < 0 || rank >= params.num_samples) {
        const uint64 all = 0 - uint64(number % 2);
        if (part == 0 && threadIdx.x == 0) bound(all, all);
        return false;
      }
      left.go_on(params.kept_items, params.kept_positions, params.num_samples);
    } else if (params.bounds != nullptr) {
      const int64 list = params.lists[number], at = params.begin[list];
      const SampleBounds& bounds = params.bounds[list];
      rank = left.take(bounds, params.kept_items + at * sizeof(Key),
                       params.kept_positions + at * sizeof(Index), rank, params.capacity[list]);
      if (left.positions != nullptr) {
        shift = detail::bit_length(Ordered(bounds.first_key) ^ Ordered(bounds.last_key));
        search.cut.key_mask = above(Ordered(0), shift);
        search.cut.key = Ordered(bounds.first_key) & search.cut.key_mask;
      }
    }
    search.rank = Index(rank);
    search.count = Index(left.count);
    left.share(part, parts);
    return true;
  }
  __device__ void bound(uint64 key, uint64 position) {
    set_bound(params.bounds[number / 2], number % 2 != 0, key, position);
  }
  __device__ bool is_found() const {
    return takes_all ? search.rank + 1 == search.count : search.count == 1;
  }

  // All bits from a place on.
  template <class Word>
  __device__ static Word above(Word, uint32 place) {
    return place >= 8 * sizeof(Word) ? Word(0) : Word(~Word(0) << place);
  }

  __device__ void choose_digit() {
    if (shift == 0) {
      by_position = true;
      shift = detail::bit_length(uint64(params.row_items - 1));
    }
    const uint32 width = shift < select_bits ? shift : select_bits, digits = (1u << width) - 1;
    shift -= width;
    if (Search::agreed(by_position)) {
      search.template count_digits<true>(left, shift, digits);
    } else {
      search.template count_digits<false>(left, shift, digits);
    }
    ++num_digits;
    if (Search::agreed(parts > 1)) exchange();
    search.look_up();
    ptx::syncthreads();
    add_digit();
  }
  // Adds the counts to those of the others, and takes those of all.
  __device__ void exchange() {
    Index* table = counts + num_digits % tables * select_bins;
    for (int i = threadIdx.x; i < select_bins; i += threads) {
      const Index count = shared.search.counts[i];
      if (count != 0) ptx::atom_add_relaxed_gpu(table + i, count);
    }
    wait_for_blocks(&state.num_counted, num_digits * parts);
    for (int i = threadIdx.x; i < select_bins; i += threads) {
      shared.search.counts[i] = ptx::ld_cg(table + i);
    }
    // All have read the counts of the digit before, whose table is the next but one to be added to.
    clear_table(num_digits + 2, part * threads, parts * threads);
    ptx::syncthreads();
  }
  __device__ void clear_table(uint32 digit, uint32 first, uint32 step) {
    Index* table = counts + digit % tables * select_bins;
    for (uint32 i = first + threadIdx.x; i < select_bins; i += step) table[i] = 0;
  }
  __device__ void add_digit() {
    const uint64 digit = shared.search.digit;
    if (by_position) {
      search.cut.position |= Index(digit << shift);
      search.cut.position_mask = above(Index(0), shift);
    } else {
      search.cut.key |= Ordered(digit << shift);
      search.cut.key_mask = above(Ordered(0), shift);
    }
    search.rank -= shared.search.before;
    search.count = shared.search.count;
  }

  // Writes what was found, or lists the positions of all elements up to it.
  __device__ void write() {
    const Cut<Ordered, Index> cut = search.cut;
    const bool has_positions = result_kind != select_one || cut.position_mask != 0;
    Search::for_each(left, has_positions, [&](bool is_there, Index i, Ordered key, Index at) {
      if constexpr (takes_all) {
        list(at, is_there && cut.takes(key, at));
      } else if (is_there && cut.agrees(key, at)) {
        if constexpr (result_kind == select_bound) {
          bound(key, at);
        } else {
          *reinterpret_cast<Key*>(result) = left.row.keys[left.position(i)];
        }
      }
    });
  }
  __device__ void list(Index position, bool is_taken) {
    if (!ptx::any_sync(all_lanes, is_taken)) return;
    const uint32 lanes = ptx::ballot_sync(all_lanes, is_taken);
    const int first = ptx::ffs(lanes) - 1;
    uint64 begin = 0;
    if (int(threadIdx.x % warp_threads) == first) {
      begin = ptx::atom_add_relaxed_gpu(&state.num_taken, uint64(ptx::popc(lanes)));
    }
    begin = shuffle(begin, first);
    if (!is_taken) return;
    const uint64 place = begin + ptx::popc(lanes & ptx::lanemask_le()) - 1;
    reinterpret_cast<uint64*>(result)[place] = position;
  }

  // The last block that is done leaves zeros.
  __device__ void clear() {
    ptx::syncthreads();
    if (threadIdx.x == 0) {
      shared.is_last = ptx::atom_add_acq_rel_gpu<1>(&state.num_done) == parts - 1;
    }
    ptx::syncthreads();
    if (!shared.is_last) return;
    clear_table(num_digits, 0, threads);
    if (threadIdx.x == 0) state = {};
  }
};

template <class Policy, int result_kind, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    ranks_kernel(const __grid_constant__ RanksParams params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  using Work = Ranks<Policy, result_kind, Order, Index>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  Work{params, shared}.run();
}

}  // namespace gpualgo

#endif
