// The first elements of each of many rows, by (key, position): a warp, or a block, holds a row, or
// a part of a longer one; the first of all its parts are then a row of another launch.
//
// Algorithm  Each lane holds keys of the row in registers. Radix selection (Zhang, Naruse, Li and
//            Wang, "Parallel Top-K Algorithms on GPU", SC 2023, doi:10.1145/3581784.3607062) finds
//            a bound that the first elements come up to: 8 bits at a time of the keys that agree so
//            far are counted in shared memory, from the highest bit on in which keys of the row
//            differ, until no more come up to the bound than can be sorted. Of keys that equal
//            the bound the first by position are taken. For up to 16 elements the bound is the
//            k-th of the lanes' first keys, if no more than a warp's lanes come up to it. One warp
//            sorts what is taken in registers: each lane sorts its pairs of key and position, then
//            bitonic merges join the runs of lanes.
// Bytes      sizeof(T) per element, and the results; launches: one; temporary storage: none. What
//            is taken is read again, mostly from caches.
// Bits       Elements are moved as they are, and their order is total. Counts are integers.
#ifndef GPUALGO_TOP_K_ROWS_CUH
#define GPUALGO_TOP_K_ROWS_CUH

#include "parts/intrinsics.cuh"
#include "parts/layout.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"
#include "radix_sort/keys.cuh"
#include "segmented_sort/registers.cuh"
#include "top_k/search.cuh"

namespace gpualgo {

template <int block_threads_, int min_blocks_, int items_, int sorted_, bool is_shared_,
          bool in_parts_>
struct ShortRowsPolicy {
  static constexpr int block_threads = block_threads_;  // at most
  static constexpr int min_blocks = min_blocks_;
  static constexpr int items = items_;           // keys of a lane
  static constexpr int sorted = sorted_;         // pairs of a lane in the sort; a power of two
  static constexpr bool is_shared = is_shared_;  // whether all warps of a block hold one row
  static constexpr bool in_parts = in_parts_;    // whether rows are parts, or made of those
};

struct ShortRowsParams {
  const unsigned char* rows;
  unsigned char* values;
  unsigned char* positions;     // null: the last of the first elements alone is wanted, by value
  const unsigned char* places;  // of a part's elements, as positions; null: where they are in it
  int64 num_rows, row_items;
  int64 count;  // first elements of a row, at most 32 * Policy::sorted
  uint64 flip;
  int64 part_items;  // of rows that are parts; the last may be shorter
  Divisor parts;     // of a row
};

constexpr int most_bounded = 16;  // of more, what comes up to the bound is mostly too much

template <class Policy, class Order>
struct ShortRow {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  using Pair = RankedPair<(Order::bits < 16 ? 16 : Order::bits), Ordered>;
  static constexpr int items = Policy::items, sorted = Policy::sorted;
  static constexpr int capacity = sorted * warp_threads;
  static constexpr int warps = Policy::is_shared ? Policy::block_threads / warp_threads : 1;
  static_assert(items <= 32 && warps * items * warp_threads <= 1 << 16);

  struct Shared {
    // One digit is counted while another is looked up or cleared.
    alignas(16) uint32 counts[3][num_digits + warp_threads];
    Ordered differ[warps];
    uint32 equal[warps];  // keys of a warp that equal the bound
    uint32 num_taken;
    uint32 places[capacity + sorted];  // positions that are taken; sorted, with gaps
  };

  const ShortRowsParams& params;
  Shared& shared;
  int64 first;  // of the row that this is a part of
  const Key* row;
  uint32 length;        // of the part
  int warp, num_warps;  // of those that hold the row
  int lane;
  uint32 begin;         // position of the lane's first key; the others are 32 apart
  int left;             // the row's length from there on
  Ordered keys[items];  // where there is no element: behind all others, by its position

  __device__ ShortRow(const ShortRowsParams& params, Shared& shared, int64 number)
      : params(params),
        shared(shared),
        first(Policy::in_parts ? params.parts.part(number) * params.part_items : 0),
        row(reinterpret_cast<const Key*>(params.rows) +
            (Policy::in_parts ? params.parts.divide(number) : number) * params.row_items + first),
        length(uint32(Policy::in_parts && params.part_items < params.row_items - first
                          ? params.part_items
                          : params.row_items - first)),
        warp(Policy::is_shared ? threadIdx.x / warp_threads : 0),
        num_warps(Policy::is_shared ? blockDim.x / warp_threads : 1),
        lane(threadIdx.x % warp_threads),
        begin(warp * (items * warp_threads) + lane),
        left(int(length) - int(begin)) {}

  __device__ static void sync() {
    if constexpr (Policy::is_shared) {
      ptx::syncthreads();
    } else {
      ptx::syncwarp();
    }
  }
  __device__ Ordered ordered(Key key) const { return Order::ordered(key) ^ Ordered(params.flip); }
  __device__ uint32 position_of(int i) const { return begin + i * warp_threads; }
  __device__ bool is_there(int i) const { return i * warp_threads < left; }

  template <bool is_whole>
  __device__ void load() {
    Key held[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      held[i] = Key{};
      if (is_whole || is_there(i)) held[i] = row[position_of(i)];
    }
#pragma unroll
    for (int i = 0; i < items; ++i) {
      keys[i] = is_whole || is_there(i) ? ordered(held[i]) : ~Ordered(0);
    }
  }

  // Returns which keys of the lane come up to the k-th of the lanes' first keys, as bits.
  __device__ uint32 find_bounded(int count) const {
    Ordered first = keys[0];
    uint32 at = 0;
#pragma unroll
    for (int i = 1; i < items; ++i) {
      if (keys[i] < first) {
        first = keys[i];
        at = i;
      }
    }
    typename Pair::type pairs[1] = {Pair::of(first, position_of(at))};
    sort_warp(pairs);
    const typename Pair::type last = shuffle(pairs[0], count - 1);
    uint32 taken = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (!ByValue<0>::before(last, Pair::of(keys[i], position_of(i)))) taken |= 1u << i;
    }
    return taken;
  }

  // Returns keys of the lane, as bits: in the whole row they are the first `count`, perhaps with
  // the next ones, up to as many as can be sorted. All threads of the row call it.
  __device__ uint32 find(int count) {
    const Ordered other = ordered(row[0]);
    Ordered differ = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (is_there(i)) differ |= keys[i] ^ other;
    }
    differ = differ_in_row(differ);
    int shift = detail::bit_length(differ);
    // Element count - 1 in order is from `low` to `low + span`. That many keys are `number`, with
    // those behind the row's end; among them the element has this rank.
    Ordered span = below(shift), low = other & ~span;
    uint32 rank = count - 1, number = length;
    const auto are_too_many = [&]() -> bool {
      return ptx::any_sync(all_lanes, count - rank - 1 + number > capacity);
    };
    // Keys out of this range are counted behind the digits, by each lane for itself, or in digits
    // behind those of the range: to leave them out would take a branch for each key.
    const uint32 others = num_digits + lane;
#pragma unroll 1
    for (int table = 0; ptx::any_sync(all_lanes, shift > 0) && are_too_many();
         table = table == 2 ? 0 : table + 1) {
      shift -= shift < digit_bits ? shift : digit_bits;
      uint32* counts = shared.counts[table];
#pragma unroll
      for (int i = 0; i < items; ++i) {
        const Ordered digit = (keys[i] - low) >> shift;
        ptx::atom_add_relaxed_cta(&counts[digit < others ? uint32(digit) : others], 1u);
      }
      sync();
      low += Ordered(look_up(counts, rank, number)) << shift;
      span = below(shift);
      clear(table == 0 ? 2 : table - 1);
    }
    uint32 taken = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (keys[i] <= low + span) taken |= 1u << i;
    }
    if (are_too_many()) taken = first_of_equal(taken, low, rank);
    const int own = (left + warp_threads - 1) / warp_threads;
    return own >= 32 ? taken : own <= 0 ? 0 : taken & ((1u << own) - 1);
  }
  __device__ static Ordered below(int shift) {
    return shift == 8 * int(sizeof(Ordered)) ? ~Ordered(0) : (Ordered(1) << shift) - 1;
  }

  // Returns the bits that differ in the row, from those that a lane found; clears the counts.
  __device__ Ordered differ_in_row(Ordered differ) {
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) differ |= shuffle_xor(differ, delta);
    if (lane == 0) shared.differ[warp] = differ;
    if (warp == 0 && lane == 0) shared.num_taken = 0;
    clear(0);
    clear(1);
    sync();
    for (int w = 0; w < (Policy::is_shared ? num_warps : 0); ++w) differ |= shared.differ[w];
    return differ;
  }
  __device__ void clear(int table) {
    auto* words = reinterpret_cast<uint4*>(shared.counts[table]);
#pragma unroll 1
    for (int i = warp * warp_threads + lane; i < int(sizeof(shared.counts[0]) / sizeof(uint4));
         i += num_warps * warp_threads) {
      words[i] = make_uint4(0, 0, 0, 0);
    }
  }

  // Returns the digit that a rank falls into, with the rank among those that have it, and their
  // number. Each warp does so for itself.
  __device__ uint32 look_up(const uint32* counts, uint32& rank, uint32& number) const {
    constexpr int each = num_digits / warp_threads;
    const Pack<uint32, each> own = load_pack<uint32, each>(counts + lane * each);
    uint32 sum = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) sum += own.items[i];
    uint32 end = sum_up_to(sum), before = end - sum, digit = lane * each;
    const int source = ptx::ffs(ptx::ballot_sync(all_lanes, rank < end)) - 1;
    end = before;
    sum = own.items[0];
#pragma unroll
    for (int i = 1; i < each; ++i) {
      end += own.items[i - 1];
      if (rank < end) continue;
      digit = lane * each + i;
      before = end;
      sum = own.items[i];
    }
    rank -= shuffle(before, source);
    number = shuffle(sum, source);
    return shuffle(digit, source);
  }

  // Drops the keys that equal the bound and are behind the one of this rank among these.
  __device__ uint32 first_of_equal(uint32 taken, Ordered bound, uint32 rank) {
    uint32 equal = 0, before = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (keys[i] == bound) equal |= 1u << i;
    }
    if constexpr (Policy::is_shared) {
      const uint32 sum = sum_up_to(ptx::popc(equal));
      if (lane == warp_threads - 1) shared.equal[warp] = sum;
      sync();
      for (int w = 0; w < warp; ++w) before += shared.equal[w];
    }
#pragma unroll 1
    for (int i = 0; i < items; ++i) {
      const bool is_equal = (equal >> i & 1) != 0;
      const uint32 lanes = ptx::ballot_sync(all_lanes, is_equal);
      if (is_equal && before + ptx::popc(lanes & ptx::lanemask_le()) > rank + 1)
        taken &= ~(1u << i);
      before += ptx::popc(lanes);
    }
    return taken;
  }

  // Lists the positions of what is taken, in any order.
  __device__ void list(uint32 taken, uint32 end, uint32 total) {
    uint32 first = end - ptx::popc(taken);
    if constexpr (Policy::is_shared) {
      uint32 of_warp = 0;
      if (lane == 0) of_warp = ptx::atom_add_relaxed_cta(&shared.num_taken, total);
      first += shuffle(of_warp, 0);
    }
    uint32* place = shared.places + first;
#pragma unroll 1
    for (; taken != 0; taken &= taken - 1) *place++ = position_of(ptx::ffs(taken) - 1);
  }

  // Puts what is listed in order, by one warp.
  __device__ void sort(uint32 total) {
    typename Pair::type pairs[sorted];
#pragma unroll
    for (int i = 0; i < sorted; ++i) {
      const uint32 place = i * warp_threads + lane;
      const uint32 position = place < total ? shared.places[place] : 0;
      const Ordered key = ordered(row[position]);
      pairs[i] = place < total ? Pair::of(key, position) : Pair::of(~Ordered(0), 0xffff);
    }
    ptx::syncwarp();
    sort_warp(pairs);
#pragma unroll
    for (int i = 0; i < sorted; ++i) {
      shared.places[slot_of(lane * sorted + i)] = Pair::position(pairs[i]);
    }
    ptx::syncwarp();
  }
  __device__ static int slot_of(int place) { return place + place / warp_threads; }

  __device__ void write(int64 number, int count) const {
    Key* values = reinterpret_cast<Key*>(params.values);
    if (params.positions == nullptr) {
      if (lane == 0) values[number] = row[shared.places[slot_of(count - 1)]];
      return;
    }
    values += number * count;
    int64* positions = reinterpret_cast<int64*>(params.positions) + number * count;
    const int64* from = nullptr;
    if constexpr (Policy::in_parts) from = reinterpret_cast<const int64*>(params.places);
    if (from != nullptr) from += number * params.row_items;
#pragma unroll
    for (int i = 0; i < sorted; ++i) {
      const int place = i * warp_threads + lane;
      if (place >= count) continue;
      const uint32 position = shared.places[slot_of(place)];
      values[place] = row[position];
      positions[place] = from == nullptr ? first + position : from[position];
    }
  }

  __device__ void run(int64 number) {
    const int count = int(params.count);
    if (ptx::all_sync(all_lanes, uint32((warp + 1) * items * warp_threads) <= length)) {
      load<true>();
    } else {
      load<false>();
    }
    uint32 taken = 0, end = 0, total = ~0u;
    if constexpr (sorted == 1 && !Policy::is_shared) {
      if (ptx::any_sync(all_lanes, count <= most_bounded)) {
        taken = find_bounded(count);
        end = sum_up_to(ptx::popc(taken));
        total = shuffle(end, warp_threads - 1);
      }
    }
    if (ptx::any_sync(all_lanes, total > capacity)) {
      taken = find(count);
      end = sum_up_to(ptx::popc(taken));
      total = shuffle(end, warp_threads - 1);
    }
    list(taken, end, total);
    sync();
    if (ptx::any_sync(all_lanes, warp != 0)) return;
    sort(Policy::is_shared ? shared.num_taken : total);
    write(number, count);
  }
};

template <class Policy, class Order>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    short_rows_kernel(const __grid_constant__ ShortRowsParams params) {
  using Work = ShortRow<Policy, Order>;
  constexpr int num_rows = Policy::is_shared ? 1 : Policy::block_threads / warp_threads;
  struct Shared {
    typename Work::Shared rows[num_rows];
  };
  auto& shared = ptx::shared_memory<Shared>();
  const int part = Policy::is_shared ? 0 : threadIdx.x / warp_threads;
  const int64 number = int64(blockIdx.x) * num_rows + part;
  if (number >= params.num_rows) return;
  Work(params, shared.rows[part], number).run(number);
}

}  // namespace gpualgo

#endif
