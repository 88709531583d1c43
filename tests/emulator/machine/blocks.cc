#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "access.h"
#include "collectives.h"
#include "copies.h"
#include "fibers.h"
#include "kernel_calls.h"
#include "late_stores.h"
#include "report.h"
#include "scheduler.h"

namespace emu {

namespace {

constexpr size_t most_free = 64;
std::vector<std::unique_ptr<Region>> free_shared;  // kept between launches

std::unique_ptr<Region> new_shared() {
  if (!free_shared.empty()) {
    std::unique_ptr<Region> region = std::move(free_shared.back());
    free_shared.pop_back();
    region->set_written(0, region->size, false);
    return region;
  }
  const uint64_t begin = reinterpret_cast<uint64_t>(aligned_alloc(4096, most_shared_bytes));
  return std::make_unique<Region>(begin, most_shared_bytes, "shared memory", true, false);
}

// What a block finds in a piece of shared memory: anything; often what betrays itself.
void poison(const Block& block, const SharedPiece& piece) {
  char* begin = reinterpret_cast<char*>(block.shared->begin + piece.begin);
  uint32_t word = launch.random.chance(0.5) ? 0xcbcbcbcbu : uint32_t(launch.random.next());
  if (launch.random.chance(0.2)) word = 0;
  // A second run: what is another number, and what is true where this was false.
  if (launch.is_second) word = word != 0 && launch.settings.seed % 2 == 1 ? 0 : ~word;
  for (uint64_t i = 0; i < piece.end - piece.begin; ++i) begin[i] = char(word >> i % 4 * 8);
}

void free_block(Block* block) {
  for (Thread& thread : block->threads) end_fiber(thread);
  block->shared->forget_accesses();
  if (free_shared.size() < most_free) {
    free_shared.push_back(std::move(block->shared));
  } else {
    free(reinterpret_cast<void*>(block->shared->begin));
  }
  delete block;
}

uint64_t rounded_up(uint64_t number, uint64_t step) { return (number + step - 1) / step * step; }

// Between pieces lie bytes that nobody may touch.
void* add_piece(const void* variable, uint64_t size, uint64_t alignment, uint32_t place) {
  constexpr uint64_t gap = 16;
  const uint64_t end = launch.pieces.empty() ? 0 : launch.pieces.back().end + gap;
  const uint64_t begin = rounded_up(end, std::max<uint64_t>(alignment, 16));
  if (begin + size > most_shared_bytes) {
    fail(place, "SHARED MEMORY: %llu bytes are more than there are",
         static_cast<unsigned long long>(begin + size));
  }
  launch.pieces.push_back({variable, begin, begin + size});
  for (const Block* block : launch.resident) poison(*block, launch.pieces.back());
  return reinterpret_cast<void*>(launch.current->block->shared->begin + begin);
}

void* find_piece(const void* variable) {
  for (const SharedPiece& piece : launch.pieces) {
    if (piece.variable != variable) continue;
    return reinterpret_cast<void*>(launch.current->block->shared->begin + piece.begin);
  }
  return nullptr;
}

constexpr uint32_t first_shared_address = 1024;

}  // namespace

void begin_block(uint32_t index) {
  Block* block = new Block;
  block->index = index;
  block->num_left = launch.num_threads;
  block->shared = new_shared();
  for (const SharedPiece& piece : launch.pieces) poison(*block, piece);
  block->threads.resize(launch.num_threads);
  block->collectives.resize((launch.num_threads + warp_threads - 1) / warp_threads);
  for (uint32_t i = 0; i < launch.num_threads; ++i) {
    Thread& thread = block->threads[i];
    thread.block = block;
    thread.index = i;
    thread.agent = block->first_agent() + i;
    thread.priority = launch.random.next() | uint64_t(1) << 63;
    begin_fiber(thread);
    make_ready(thread);
  }
  launch.resident.push_back(block);
  launch.stats.most_resident =
      std::max<uint64_t>(launch.stats.most_resident, launch.resident.size());
}

bool end_thread(Thread& thread) {
  Block* block = thread.block;
  make_unready(thread);
  complete_after_end(thread);
  if (block->num_left > 0) return true;
  for (Thread& ended : block->threads) flush_stores(ended);
  if (!check_copies_at_end(*block)) return false;
  launch.resident.erase(std::find(launch.resident.begin(), launch.resident.end(), block));
  free_block(block);
  return true;
}

void abandon_blocks() {
  for (Block* block : launch.resident) free_block(block);
  launch.resident.clear();
}

}  // namespace emu

using namespace emu;

extern "C" {

void* emu_shared(const void* variable, uint64_t size, uint64_t alignment) {
  void* found = find_piece(variable);
  return found != nullptr ? found : add_piece(variable, size, alignment, caller());
}

void* emu_dynamic_shared(uint64_t alignment) {
  static const char variable = 0;
  void* found = find_piece(&variable);
  if (found != nullptr) return found;
  return add_piece(&variable, launch.dynamic_bytes, alignment, caller());
}

uint32_t emu_to_shared(const void* address) {
  const uint64_t begin = launch.current->block->shared->begin;
  const uint64_t offset = reinterpret_cast<uint64_t>(address) - begin;
  if (offset >= most_shared_bytes) fail(caller(), "SHARED MEMORY: %p does not lie in it", address);
  return first_shared_address + uint32_t(offset);
}

void* emu_from_shared(uint32_t address) {
  const uint32_t offset = address - first_shared_address;
  if (offset >= most_shared_bytes) fail(caller(), "SHARED MEMORY: no address %u in it", address);
  return reinterpret_cast<void*>(launch.current->block->shared->begin + offset);
}

EmuIndex emu_thread_index() { return {launch.current->index, 0, 0}; }
EmuIndex emu_block_index() { return {launch.current->block->index, 0, 0}; }
EmuIndex emu_block_size() { return {launch.num_threads, 1, 1}; }
EmuIndex emu_grid_size() { return {launch.num_blocks, 1, 1}; }
}
