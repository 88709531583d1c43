// One round of merges of segments that several tiles have sorted parts of; stable.
//
// Algorithm  A segment of m tiles takes ceil(log2 m) rounds, the last of which is the last of all,
//            and merges two neighbouring groups of tiles in each. segment_splits_kernel finds by
//            binary search which elements of the two make each tile of the result ("merge path":
//            Odeh, Green, Mwassi, Shmueli and Birk 2012, doi:10.1109/IPDPSW.2012.202) and lists
//            the tiles that the round has; blocks of segment_merge_kernel take them from the list.
//            What is in no such segment is not touched.
// Bytes      2 (k + v) per key of k bytes with values of v in a segment that the round has;
//            launches: two; temporary storage: 64 bytes for each tile.
#ifndef GPUALGO_SEGMENTED_SORT_MERGE_CUH
#define GPUALGO_SEGMENTED_SORT_MERGE_CUH

#include "merge_sort/merge.cuh"
#include "segmented_sort/plain.cuh"
#include "segmented_sort/spans.cuh"

namespace gpualgo {

template <int key_leaves, int value_leaves>
struct SegmentMergeParams {
  const SegmentSpan* spans;
  uint32* count;                                // of cuts; zero at first
  const uint32* has_odd;                        // whether a key is_odd
  MergeParams<key_leaves, value_leaves> merge;  // by its runs, its output and its cuts
  int64 num_tiles;
  int64 rounds_left;  // with this one
};

// Two lanes for each part of a tile: up to its first head, and from its last one on.
template <class Policy, int tile_items, class Order, class T, int value_leaves>
__global__ void __launch_bounds__(Policy::block_threads) segment_splits_kernel(
    const __grid_constant__ SegmentMergeParams<num_leaves<T>, value_leaves> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  constexpr int part_items = Policy::tile_items;
  const int64 number = (int64(blockIdx.x) * Policy::block_threads + threadIdx.x) / 2;
  const int64 part = number / 2;
  const bool is_end = threadIdx.x % 2;  // of what it becomes
  SegmentSpan span{0, 0};
  if (part < params.num_tiles) {
    span = params.spans[part + number % 2];
    // One that reaches through the tile has it as its first part alone.
    if (number % 2 == 1 && span.begin < part * part_items) span = {0, 0};
  }
  const int rounds = rounds_of<tile_items>(span);
  const bool is_due = rounds >= params.rounds_left && rounds > 0;
  int64 begin = 0, middle = 0, place = 0, split = 0;
  if (is_due) {
    const int doublings = rounds - int(params.rounds_left);
    const int64 run = int64(1) << doublings;  // in tiles
    const int64 first = span.begin / tile_items;
    const int64 part_tile = part * part_items / tile_items - first;
    const int64 group = first + (part_tile >> (doublings + 1) << (doublings + 1));
    const auto bounded = [&](int64 tile) {
      const int64 at = tile * tile_items;
      return at < span.begin ? span.begin : at > span.end ? span.end : at;
    };
    begin = bounded(group);
    middle = bounded(group + run);
    const int64 end = bounded(group + 2 * run);
    const int64 edge = (part + is_end) * part_items;
    place = (edge < span.begin ? span.begin : edge > span.end ? span.end : edge) - begin;
    const auto keys = sources_of<T>(params.merge.first.keys);
    split = split_at(place, middle - begin, end - middle, [&](int64 in_b, int64 in_a) {
      const T of_b = load_element<T>(advanced(keys, middle + in_b));
      const T of_a = load_element<T>(advanced(keys, begin + in_a));
      return Order::before(of_b, of_a);
    });
  }
  const int64 end_split = shuffle_down(split, 1), end_place = shuffle_down(place, 1);
  const bool has_cut = is_due && !is_end;
  const uint32 having = ptx::ballot_sync(all_lanes, has_cut);
  const int lane = threadIdx.x % warp_threads;
  uint32 at = 0;
  if (lane == 0 && having != 0) {
    at = ptx::atom_add_relaxed_gpu(params.count, uint32(ptx::popc(having)));
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
  reinterpret_cast<MergeCut*>(params.merge.cuts)[at] = cut;
}

template <class Policy, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) segment_merge_kernel(
    const __grid_constant__ SegmentMergeParams<num_leaves<T>, num_leaves<V>> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  const uint32 count = *params.count;
  const auto run = [&](auto order) {
    using Work = TileMerge<Policy, decltype(order), T, V>;
    auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
    Work(params.merge, shared).run(count);
  };
  if constexpr (is_record<T>) {
    run(Order{});
  } else {
    if constexpr (is_float<T>) {
      if (*params.has_odd) return run(Order{});
    }
    run(ByPlainNumber<(Order::ways & 1) != 0>{});
  }
}

}  // namespace gpualgo

#endif
