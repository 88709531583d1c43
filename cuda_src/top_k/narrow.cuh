// The elements of some ranks among those that were kept of a long row (top_k/sample.cuh), by many
// blocks: a launch for each digit.
//
// Algorithm  Radix selection, the most significant digit first (Zhang, Naruse, Li and Wang,
//            "Parallel Top-K Algorithms on GPU", SC 2023, doi:10.1145/3581784.3607062), as
//            top_k/search.cuh does it for a block: blocks count 11 bits of the keys, then of the
//            positions, of those that agree so far; the last of them that is done finds the digit
//            that the rank falls into. Bits that the bounds share are known. Launches behind the
//            last digit that is needed return at once.
// Bytes      sizeof(Key) of what is kept for each digit, and once more at the end; launches: one
//            for each 11 bits of a key and of a position, and one. Neighbours among the blocks
//            have different ranks.
// Storage    A state and 2048 counts for each rank.
// Bits       Counts are integers, and the order of (key, position) is total. What is listed comes
//            in any order, and is put in one by who reads it.
#ifndef GPUALGO_TOP_K_NARROW_CUH
#define GPUALGO_TOP_K_NARROW_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "top_k/sample.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

// What is known of a rank; zero at first.
struct RankState {
  uint64 key, key_mask, position, position_mask;
  uint64 rank, count;  // among those that agree with these, and how many these are
  uint64 num_taken;
  uint32 shift, by_position;  // the bits of a word that are not known yet
  uint32 is_done, num_done;   // blocks
};

struct NarrowParams {
  const unsigned char* row;
  const unsigned char* kept_items;
  const unsigned char* kept_positions;
  const SampleBounds* bounds;
  RankState* states;
  unsigned char* counts;
  unsigned char* result;  // the element of each rank, or positions
  int64 row_items, result_step, is_first, num_ranks;
  uint64 flip;
  int64 ranks[most_ranks], lists[most_ranks];     // the list that holds a rank
  int64 begin[most_ranks], capacity[most_ranks];  // of lists
};

template <int block_threads_, int min_blocks_, bool overlaps_>
struct NarrowPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int min_blocks = min_blocks_;
  static constexpr bool overlaps = overlaps_;
};

// takes_all: all elements up to the rank are wanted, not its own alone.
template <class Policy, bool takes_all, class Order, class Index>
struct Narrow {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  static constexpr int threads = Policy::block_threads;
  using Search = RankSearch<threads, Ordered, Index>;

  struct Shared {
    typename Search::Shared search;
    bool is_last;
  };

  const NarrowParams& params;
  Shared& shared;
  uint32 number = blockIdx.x % uint32(params.num_ranks);  // of the rank
  uint32 part = blockIdx.x / uint32(params.num_ranks), parts = gridDim.x / uint32(params.num_ranks);
  RankState& state = params.states[number];
  LeftElements<Order, Index> left{RowElements<Order, Index>{
      reinterpret_cast<const Key*>(params.row), params.row_items, Ordered(params.flip)}};
  Search search{shared.search, 0, 0};
  uint32 shift = 0;
  bool by_position = false;

  // Returns whether there is anything left to find.
  __device__ bool begin() {
    const int64 list = params.lists[number], at = params.begin[list];
    const SampleBounds& bounds = params.bounds[list];
    const int64 rank = left.take(bounds, params.kept_items + at * sizeof(Key),
                                 params.kept_positions + at * sizeof(Index), params.ranks[number],
                                 params.capacity[list]);
    if (params.is_first) {
      search.rank = Index(rank);
      search.count = Index(left.count);
      shift = 8 * sizeof(Ordered);
      if (left.positions != nullptr) {
        shift = detail::bit_length(Ordered(bounds.first_key) ^ Ordered(bounds.last_key));
      }
      search.cut.key_mask = above(Ordered(0), shift);
      search.cut.key = Ordered(bounds.first_key) & search.cut.key_mask;
    } else {
      search.rank = Index(state.rank);
      search.count = Index(state.count);
      search.cut = {Ordered(state.key), Ordered(state.key_mask), Index(state.position),
                    Index(state.position_mask)};
      shift = state.shift;
      by_position = state.by_position != 0;
    }
    const bool is_done = params.is_first ? is_found() : state.is_done != 0;
    left.share(part, parts);
    return Search::agreed(!is_done);
  }
  __device__ bool is_found() const {
    return takes_all ? search.rank + 1 == search.count : search.count == 1;
  }

  // All bits from a place on.
  template <class Word>
  __device__ static Word above(Word, uint32 place) {
    return place >= 8 * sizeof(Word) ? Word(0) : Word(~Word(0) << place);
  }

  // Counts the next digit; the last block finds the one that the rank falls into.
  __device__ void run() {
    if (!begin()) {
      if (params.is_first && part == 0 && threadIdx.x == 0) leave();
      return;
    }
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
    Index* counts = reinterpret_cast<Index*>(params.counts) + number * select_bins;
    for (int i = threadIdx.x; i < select_bins; i += threads) {
      const Index count = shared.search.counts[i];
      if (count != 0) ptx::atom_add_relaxed_gpu(counts + i, count);
    }
    ptx::syncthreads();
    if (threadIdx.x == 0) {
      shared.is_last = ptx::atom_add_acq_rel_gpu<1>(&state.num_done) == parts - 1;
    }
    ptx::syncthreads();
    if (!shared.is_last) return;
    for (int i = threadIdx.x; i < select_bins; i += threads) {
      shared.search.counts[i] = ptx::ld_cg(counts + i);
      counts[i] = 0;
    }
    ptx::syncthreads();
    search.look_up();
    ptx::syncthreads();
    if (threadIdx.x == 0) add_digit();
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
    leave();
  }
  // By one thread, for the next launch.
  __device__ void leave() {
    const Cut<Ordered, Index>& cut = search.cut;
    state.key = cut.key;
    state.key_mask = cut.key_mask;
    state.position = cut.position;
    state.position_mask = cut.position_mask;
    state.rank = search.rank;
    state.count = search.count;
    state.shift = shift;
    state.by_position = by_position;
    state.is_done = is_found();
    state.num_done = 0;
  }

  // Writes the element that was found, or lists the positions of all up to it.
  __device__ void write() {
    begin();
    const Cut<Ordered, Index> cut = search.cut;
    const bool has_positions = takes_all || cut.position_mask != 0;
    Search::for_each(left, has_positions, [&](bool is_there, Index i, Ordered key, Index at) {
      if constexpr (takes_all) {
        list(at, is_there && cut.takes(key, at));
      } else if (is_there && cut.agrees(key, at)) {
        auto* result = params.result + number * params.result_step;
        *reinterpret_cast<Key*>(result) = left.row.keys[left.position(i)];
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
    reinterpret_cast<uint64*>(params.result)[place] = position;
  }
};

template <class Policy, bool takes_all, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    narrow_kernel(const __grid_constant__ NarrowParams params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Work = Narrow<Policy, takes_all, Order, Index>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  Work{params, shared}.run();
}

template <class Policy, bool takes_all, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    write_ranks_kernel(const __grid_constant__ NarrowParams params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_wait();
  using Work = Narrow<Policy, takes_all, Order, Index>;
  auto& shared = ptx::shared_memory<typename Work::Shared>();
  Work{params, shared}.write();
}

}  // namespace gpualgo

#endif
