// Merges of segments that several tiles have sorted parts of, in rounds; stable.
//
// Algorithm  A segment of m tiles takes ceil(log2 m) rounds, the last of which is the last of all,
//            and merges two neighbouring groups of tiles in each. In a round the blocks find by
//            binary search which elements of the two make each tile of the result ("merge path":
//            Odeh, Green, Mwassi, Shmueli and Birk 2012, doi:10.1109/IPDPSW.2012.202) and list
//            the tiles that the round has. They wait for each other, take tiles from the list, and
//            wait again. What is in no such segment is not touched.
// Bytes      2 (k + v) per key of k bytes with values of v in a segment that a round has;
//            launches: one, of blocks that run at the same time, as they wait for each other;
//            temporary storage: 64 bytes for each tile.
#ifndef GPUALGO_SEGMENTED_SORT_MERGE_CUH
#define GPUALGO_SEGMENTED_SORT_MERGE_CUH

#include "merge_sort/merge.cuh"
#include "parts/waiting.cuh"
#include "segmented_sort/plain.cuh"
#include "segmented_sort/spans.cuh"

namespace gpualgo {

template <int key_leaves, int value_leaves>
struct SegmentMergeParams {
  const SegmentSpan* spans;
  unsigned char* cuts;
  SegmentCounts* counts;
  SegmentBuffer<key_leaves, value_leaves> home;  // where the last round writes
  SegmentBuffer<key_leaves, value_leaves> side;
  int64 num_tiles;
};

// sorted_items: of the tiles whose elements are sorted before the first round.
template <class Policy, int sorted_items, class Order, class T, class V>
struct SegmentMerge {
  static constexpr int threads = Policy::block_threads;
  static constexpr int part_items = Policy::tile_items;
  static constexpr int key_leaves = num_leaves<T>, value_leaves = num_leaves<V>;
  using Round = MergeParams<key_leaves, value_leaves>;  // by its runs, its output and its cuts

  const SegmentMergeParams<key_leaves, value_leaves>& params;
  Round& round;  // shared

  __device__ void run() {
    uint32 num_waits = 0;
    for (int left = int(params.counts->num_rounds); left > 0; --left) {
      begin(left);
      for (int64 lane = int64(blockIdx.x) * threads; lane < 4 * params.num_tiles;
           lane += int64(gridDim.x) * threads) {
        list(left, lane + threadIdx.x);
      }
      wait_for_blocks(&params.counts->num_arrived, ++num_waits * gridDim.x);
      using Work = TileMerge<Policy, Order, T, V>;
      Work work(round, ptx::dynamic_shared_memory<typename Work::Shared>());
      work.run(ptx::ld_relaxed_gpu(&params.counts->num_cuts[left]));
      if (left > 1) wait_for_blocks(&params.counts->num_arrived, ++num_waits * gridDim.x);
    }
  }

 private:
  // Sets where a round, with which so many are left, reads and writes.
  __device__ void begin(int left) {
    if (threadIdx.x == 0) {
      const auto& from = left % 2 == 1 ? params.side : params.home;
      const auto& to = left % 2 == 1 ? params.home : params.side;
      for (int i = 0; i < key_leaves; ++i) {
        round.first.keys[i] = round.second.keys[i] = from.keys[i];
        round.output_keys[i] = to.keys[i];
      }
      for (int i = 0; i < value_leaves; ++i) {
        round.first.values[i] = round.second.values[i] = from.values[i];
        round.output_values[i] = to.values[i];
      }
      round.cuts = params.cuts;
    }
    ptx::syncthreads();
  }

  // Lists a part of a tile that the round has. Two lanes for each part: the one up to the tile's
  // first head, and the one from its last head on.
  __device__ void list(int left, int64 lane) {
    const int64 number = lane / 2, part = number / 2;
    const bool is_end = lane % 2;  // of what it becomes
    SegmentSpan span{0, 0};
    if (part < params.num_tiles) {
      span = params.spans[part + number % 2];
      // One that reaches through the tile has it as its first part alone.
      if (number % 2 == 1 && span.begin < part * part_items) span = {0, 0};
    }
    const int rounds = rounds_of<sorted_items>(span);
    const bool is_due = rounds >= left;
    int64 begin = 0, middle = 0, place = 0, split = 0;
    if (is_due) {
      const int doublings = rounds - left;
      const int64 run = int64(1) << doublings;  // in tiles
      const int64 first = span.begin / sorted_items;
      const int64 part_tile = part * part_items / sorted_items - first;
      const int64 group = first + (part_tile >> (doublings + 1) << (doublings + 1));
      const auto bounded = [&](int64 tile) {
        const int64 at = tile * sorted_items;
        return at < span.begin ? span.begin : at > span.end ? span.end : at;
      };
      begin = bounded(group);
      middle = bounded(group + run);
      const int64 end = bounded(group + 2 * run);
      const int64 edge = (part + is_end) * part_items;
      place = (edge < span.begin ? span.begin : edge > span.end ? span.end : edge) - begin;
      const auto keys = sources_of<T>(round.first.keys);
      split = split_at(place, middle - begin, end - middle, [&](int64 in_b, int64 in_a) {
        const T of_b = load_element<T>(advanced(keys, middle + in_b));
        const T of_a = load_element<T>(advanced(keys, begin + in_a));
        return Order::before(of_b, of_a);
      });
    }
    const int64 end_split = shuffle_down(split, 1), end_place = shuffle_down(place, 1);
    const bool has_cut = is_due && !is_end;
    const uint32 having = ptx::ballot_sync(all_lanes, has_cut);
    uint32 at = 0;
    if (threadIdx.x % warp_threads == 0 && having != 0) {
      at = ptx::atom_add_relaxed_gpu(&params.counts->num_cuts[left], uint32(ptx::popc(having)));
    }
    at = shuffle(at, 0) + ptx::popc(having & (ptx::lanemask_le() >> 1));
    if (!has_cut) return;
    MergeCut cut;
    cut.begin_a = begin + split;
    cut.begin_b = middle + place - split;
    cut.begin = begin + place;
    cut.num_items = int32(end_place - place);
    // Of keys that change meanwhile they may be anything.
    const int64 num_a = end_split - split;
    cut.num_a = num_a < 0 ? 0 : num_a > cut.num_items ? cut.num_items : int32(num_a);
    reinterpret_cast<MergeCut*>(params.cuts)[at] = cut;
  }
};

template <class Policy, int sorted_items, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) segment_merge_kernel(
    const __grid_constant__ SegmentMergeParams<num_leaves<T>, num_leaves<V>> params) {
  const auto run = [&](auto order) {
    using Work = SegmentMerge<Policy, sorted_items, decltype(order), T, V>;
    Work{params, ptx::shared_memory<typename Work::Round>()}.run();
  };
  if constexpr (is_record<T>) {
    run(Order{});
  } else {
    if constexpr (is_float<T>) {
      if (params.counts->has_odd) return run(Order{});
    }
    run(ByPlainNumber<(Order::ways & 1) != 0>{});
  }
}

}  // namespace gpualgo

#endif
