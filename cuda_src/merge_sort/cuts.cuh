// Where several sorted runs are cut, so that the elements before the cuts are the first ones of all
// together: exact, stable (of equal elements those of an earlier run come first, then by place).
//
// Algorithm  Selection from sorted runs by samples, as splitters of sample sorts are found
//            (Blelloch et al. 1991, doi:10.1145/113379.113380). run_cuts_kernel finds the cuts at
//            the ends of chunks, in rounds: a block has a rank. It loads every width-th of the
//            elements that may still be on either side, of all runs at once, finds the place of
//            each among them, and knows two cuts of each run, one with too few and one with too
//            many elements before it, some widths apart. The last width is one.
//            piece_cuts_kernel cuts each chunk into pieces: a block takes every width-th element
//            of its chunk, and each `groups`-th of these samples is the last of a piece, which has
//            less than (groups + runs) * width elements.
// Bytes      some thousand elements for each chunk and round; each round is one latency of the
//            memory, of which runs may lie on other GPUs. 2^31 elements: four rounds.
// Operator   none: elements are compared by value.
#ifndef GPUALGO_MERGE_SORT_CUTS_CUH
#define GPUALGO_MERGE_SORT_CUTS_CUH

#include "merge_sort/order.cuh"

namespace gpualgo {

// Runs, and the part of their merged row that is wanted, in chunks.
template <int key_leaves, int value_leaves, int runs>
struct MergeRunsParams {
  const unsigned char* keys[runs][key_leaves];
  const unsigned char* values[runs][value_leaves];
  unsigned char* output_keys[key_leaves];  // null: not wanted
  unsigned char* output_values[value_leaves];
  int64* cuts;  // of each piece one for each run; at the end, where the last piece ends
  int64 lengths[runs];
  int64 starts[runs];  // added to values that are positions in their run; else zero
  int64 first, last;   // ranks of the part
  int64 shift;         // of two, how far apart the samples of pieces are
};

template <int block_threads_, int samples_, int groups_, int shared_bytes_, bool overlaps_>
struct RunCutsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int samples = samples_;  // of a round, at most
  static constexpr int groups = groups_;    // samples of a piece
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr bool overlaps = overlaps_;  // launched while the kernel before still runs
  static constexpr int pieces = samples / groups + 1;  // of a chunk
};

template <class Policy, class Order, class T, int value_leaves, int runs>
struct RunCuts {
  using Params = MergeRunsParams<num_leaves<T>, value_leaves, runs>;
  static_assert(runs <= Policy::block_threads && 4 * runs < Policy::samples);

  struct Shared {
    alignas(16) T samples[Policy::samples];  // of the runs in order
    int places[Policy::samples];             // of each, how many come before it
    int begins[runs + 1];                    // of each run's samples
    int64 low[runs], high[runs];             // each run is cut at least and at most here
    int64 missing;                           // elements before the cuts, behind `low`
    int shift;                               // of two, how far apart samples are
    int ends[Policy::pieces];                // samples that are the last of pieces
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;

  __device__ RunCuts(const Params& params, Shared& shared) : params(params), shared(shared) {}

  // What a round looks at; by one thread.
  __device__ void begin_round(int64 rank) {
    int64 open = 0, missing = rank;
    for (int i = 0; i < runs; ++i) {
      open += shared.high[i] - shared.low[i];
      missing -= shared.low[i];
    }
    int shift = 0;
    while (open >> shift > Policy::samples) ++shift;
    shared.missing = missing;
    begin_samples(shift);
  }
  __device__ void begin_samples(int shift) {
    int begin = 0;
    for (int i = 0; i < runs; ++i) {
      shared.begins[i] = begin;
      begin += int((shared.high[i] - shared.low[i]) >> shift);
    }
    shared.begins[runs] = begin;
    shared.shift = shift;
  }

  __device__ int run_of(int sample) const {
    int run = 0;
    while (sample >= shared.begins[run + 1]) ++run;
    return run;
  }

  __device__ void load() {
    const int64 width = int64(1) << shared.shift;
    for (int i = threadIdx.x; i < shared.begins[runs]; i += Policy::block_threads) {
      const int run = run_of(i);
      const int64 place = shared.low[run] + (i - shared.begins[run] + 1) * width - 1;
      const auto from = advanced(sources_of<T>(params.keys[run]), place);
      assign(shared.samples[i], load_element<T>(from));
    }
  }

  // Returns how many samples of a run come before one of another run.
  __device__ int before(int sample, int run, bool is_earlier) const {
    const int begin = shared.begins[run];
    return end_before<Order>(begin, shared.begins[run + 1], shared.samples[sample], is_earlier,
                             [&](int i) -> const T& { return shared.samples[i]; }) -
           begin;
  }

  __device__ void place() {
    for (int i = threadIdx.x; i < shared.begins[runs]; i += Policy::block_threads) {
      const int own = run_of(i);
      int found = i - shared.begins[own];
      for (int run = 0; run < runs; ++run) {
        if (run != own) found += before(i, run, run < own);
      }
      shared.places[i] = found;
    }
  }

  // Returns how many samples of a run are among the first `count` of all.
  __device__ int among(int run, int64 count) const {
    int low = shared.begins[run], high = shared.begins[run + 1];
    while (low < high) {
      const int middle = (low + high) / 2;
      if (shared.places[middle] < count) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - shared.begins[run];
  }

  // So many samples, each with the elements before it: at most width - 1 more of each other run.
  __device__ void end_round(int run) {
    const int shift = shared.shift;
    const int64 width = int64(1) << shift, missing = shared.missing;
    const int64 sure = missing - (runs - 1) * (width - 1);
    const int64 low = shared.low[run];
    const int few = among(run, sure > 0 ? sure >> shift : 0), many = among(run, missing >> shift);
    shared.low[run] = low + few * width;
    if (many < shared.begins[run + 1] - shared.begins[run]) {
      shared.high[run] = low + (many + 1) * width - 1;
    }
  }

  __device__ int64* cuts_of(int64 chunk) const {
    return params.cuts + chunk * Policy::pieces * runs;
  }

  // Writes the cuts before a chunk.
  __device__ void run(int chunk) {
    const int own = threadIdx.x;
    const int64 begin = params.first + (chunk * int64(Policy::samples) << params.shift);
    const int64 rank = begin < params.last ? begin : params.last;
    if (own < runs) {
      shared.low[own] = 0;
      shared.high[own] = params.lengths[own];
    }
    for (int shift = 1; shift > 0;) {
      ptx::syncthreads();
      if (own == 0) begin_round(rank);
      ptx::syncthreads();
      shift = shared.shift;
      load();
      ptx::syncthreads();
      place();
      ptx::syncthreads();
      if (own < runs) end_round(own);
    }
    if (own < runs) cuts_of(chunk)[own] = shared.low[own];
  }

  // Returns how many elements of a run come before the end of a piece, or all where it has none.
  __device__ int64 cut_after(int piece, int run) const {
    const int count = piece * Policy::groups;
    const int64 end = shared.high[run], width = int64(1) << shared.shift;
    if (count > shared.begins[runs]) return end;
    const int sample = shared.ends[piece], own = run_of(sample);
    const int64 low = shared.low[run] + among(run, count) * width;
    if (run == own) return low;
    const int64 high = low + width - 1 < end ? low + width - 1 : end;
    const auto keys = sources_of<T>(params.keys[run]);
    return end_before<Order>(low, high, shared.samples[sample], run < own,
                             [&](int64 i) { return load_element<T>(advanced(keys, i)); });
  }

  // Writes the cuts between a chunk's pieces.
  __device__ void cut_pieces(int chunk) {
    const int own = threadIdx.x;
    if (own < runs) {
      shared.low[own] = cuts_of(chunk)[own];
      shared.high[own] = cuts_of(chunk + 1)[own];
    }
    ptx::syncthreads();
    if (own == 0) begin_samples(int(params.shift));
    ptx::syncthreads();
    load();
    ptx::syncthreads();
    place();
    for (int i = own; i < shared.begins[runs]; i += Policy::block_threads) {
      const int count = shared.places[i] + 1;
      if (count % Policy::groups == 0) shared.ends[count / Policy::groups] = i;
    }
    ptx::syncthreads();
    for (int i = own + runs; i < Policy::pieces * runs; i += Policy::block_threads) {
      cuts_of(chunk)[i] = cut_after(i / runs, i % runs);
    }
  }
};

// One block more than chunks.
template <class Policy, class Order, class T, int value_leaves, int runs>
__global__ void __launch_bounds__(Policy::block_threads) run_cuts_kernel(
    const __grid_constant__ MergeRunsParams<num_leaves<T>, value_leaves, runs> params) {
  ptx::overlap_both<Policy::overlaps>();
  using Work = RunCuts<Policy, Order, T, value_leaves, runs>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared).run(blockIdx.x);
}

// A block for each chunk.
template <class Policy, class Order, class T, int value_leaves, int runs>
__global__ void __launch_bounds__(Policy::block_threads) piece_cuts_kernel(
    const __grid_constant__ MergeRunsParams<num_leaves<T>, value_leaves, runs> params) {
  ptx::overlap_both<Policy::overlaps>();
  using Work = RunCuts<Policy, Order, T, value_leaves, runs>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared).cut_pieces(blockIdx.x);
}

}  // namespace gpualgo

#endif
