// What a radix pass holds of a tile: its items in shared memory, small numbers in registers.
#ifndef GPUALGO_RADIX_SORT_MOVED_CUH
#define GPUALGO_RADIX_SORT_MOVED_CUH

#include "parts/intrinsics.cuh"
#include "parts/types.cuh"
#include "radix_sort/keys.cuh"

namespace gpualgo {

namespace detail {

// A key and its value in one word.
template <class Key, class Value>
struct alignas(sizeof(Key) + sizeof(Value)) Joined {
  Key key;
  Value value;
};

template <bool is_joined, class Key, class Value>
using MovedBy = Either<is_joined, Joined<Key, Value>, Key>;

// What a tile moves, in order: side by side, joined, or values once the keys are written.
template <class Key, class Value, int items, bool is_joined, bool is_in_turn>
struct MovedItems {
  alignas(16) Key keys[items];
  alignas(16) Value values[is_same<Value, NoValue> ? 1 : items];
};
template <class Key, class Value, int items>
struct MovedItems<Key, Value, items, true, false> {
  alignas(16) Joined<Key, Value> keys[items];
};
template <class Key, class Value, int items>
struct MovedItems<Key, Value, items, false, true> {
  union {
    alignas(16) Key keys[items];
    alignas(16) Value values[items];
  };
};

// Numbers of 8 or 16 bits, several in a register.
template <int count, int bits>
struct PackedNumbers {
  static constexpr int bytes = bits / 8;
  static constexpr int per_word = 4 / bytes;
  static_assert(bytes == 1 || bytes == 2);
  uint32 words[(count + per_word - 1) / per_word];

  // In order, as the first of a word takes all of it. Packed here and now: the compiler would
  // rather keep the numbers in registers of their own until they are wanted.
  __device__ void append(int i, uint32 number) {
    uint32& word = words[i / per_word];
    const uint32 byte = i % per_word * bytes;  // of the word, the number's lowest
    const uint32 taken = (bytes == 1 ? 0xfu : 0xffu) << 4 * byte;
    const uint32 bytes_of_number = (bytes == 1 ? 0x4u : 0x54u) << 4 * byte;
    const uint32 selector = (0x3210u & ~taken) | bytes_of_number;
    word = ptx::computed_now(byte == 0 ? number : ptx::byte_perm(word, number, selector));
  }
  __device__ uint32 operator[](int i) const {
    const uint32 byte = i % per_word * bytes;
    return ptx::byte_perm(words[i / per_word], 0,
                          bytes == 1 ? 0x4440 + byte : 0x4410 + 0x11 * byte);
  }
};

}  // namespace detail

}  // namespace gpualgo

#endif
