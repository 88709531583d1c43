// Scans of segments: runs that begin where marks are (segments/heads.cuh), not where keys differ.
//
// Offsets    A scan begins anew wherever an offset is, in whatever order they come. What lies
//            outside [bounds[0], bounds[1]) is in no segment and is copied. Where segments have
//            starts of their own, which one begins at an element is found by search in the offsets,
//            of those that begin there the last: offsets that fall choose a start by what it meets.
//            The launch before sets the marks, or the grid's first blocks; the others wait for
//            these, which start before them, and a tile resets its marks once it has read them.
// Bytes      An eighth of a byte per element instead of its key; an offset per segment.
// In place   Safe where output and input are the same elements: a tile is loaded before it is
//            stored, and no other tile reads it.
#ifndef GPUALGO_BY_KEY_MARKS_CUH
#define GPUALGO_BY_KEY_MARKS_CUH

#include "parts/element.cuh"
#include "parts/fold.cuh"
#include "parts/leaves.cuh"

namespace gpualgo {

struct NoKey {};  // instead of a key
template <>
inline constexpr int num_leaves<NoKey> = 0;
// Instead of an equality: offsets, whether each segment has a start of its own, and whether this
// launch sets the marks.
template <class Index_, bool has_starts_, bool sets_marks_>
struct ByOffsets {
  using Index = Index_;
  static constexpr bool has_starts = has_starts_, sets_marks = sets_marks_;
};
template <class Equal>
struct OffsetsOf : ByOffsets<void, false, false> {};
template <class Index, bool starts, bool marks>
struct OffsetsOf<ByOffsets<Index, starts, marks>> : ByOffsets<Index, starts, marks> {};

template <class A, class T, int outputs, class Access>
struct MarkedParams {
  Init<A> init;
  Sources<T> input;
  unsigned char* output[outputs];
  Sources<A> starts;  // of each segment, where it has one of its own
  const unsigned char* offsets;
  uint32* heads;  // see segments/heads.cuh; 0 between launches that set them
  int64* bounds;
  uint64* firsts;      // where segments have starts
  uint32* num_marked;  // blocks that have set their marks; 0 between launches
  unsigned char* states;
  int64 num_items, num_tiles, num_words;
  int64 num_markers;  // blocks that set marks
  int64 num_offsets, offset_step;
  int64 start_steps[outputs], output_steps[outputs];
  Access access;
};

// Elements of a tile: keys and values as they are read, or marked values as they are folded.
template <class K, class A, class T>
struct TileElement {
  using type = Held<T>;
};
template <class A, class T>
struct TileElement<NoKey, A, T> {
  using type = A;
};

}  // namespace gpualgo

#endif
