// Tests' calls: control.h.
#include "control.h"

#include <link.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "allocations.h"
#include "blocks.h"
#include "copies.h"
#include "late_stores.h"
#include "report.h"
#include "reruns.h"

namespace emu {

Launch launch;

namespace {

using ull = unsigned long long;

std::mutex serving;
thread_local std::string last_report;

struct Side {
  Region* region;  // null: memory of the host that no kernel sees
  uint64_t offset;
};

// False: the bytes begin or end within an allocation, but do not lie in it.
bool find_side(const void* memory, uint64_t bytes, const char* what, Side& side) {
  const uint64_t address = reinterpret_cast<uint64_t>(memory);
  side.region = region_at(address);
  if (side.region == nullptr) {
    Region* end = bytes == 0 ? nullptr : region_at(address + bytes - 1);
    if (end == nullptr) return true;
    last_report = "OUT OF BOUNDS: a " + std::string(what) + " of " + std::to_string(bytes) +
                  " bytes begins before " + end->name + " and ends in it\n";
    return false;
  }
  side.offset = address - side.region->begin;
  if (bytes <= side.region->size - side.offset) return true;
  last_report = "OUT OF BOUNDS: a " + std::string(what) + " of " + std::to_string(bytes) +
                " bytes at " + address_name(*side.region, side.offset) + "\n";
  return false;
}

void copy_written(const Side& target, const Side& source, uint64_t bytes) {
  if (target.region == nullptr) return;
  target.region->set_written(target.offset, bytes);
  if (source.region == nullptr || source.region->is_written(source.offset, bytes)) return;
  for (uint64_t i = 0; i < bytes; ++i) {
    if (source.region->is_written(source.offset + i, 1)) continue;
    target.region->set_written(target.offset + i, 1, false);
  }
}

// The range of addresses of the library around one.
int find_image(dl_phdr_info* info, size_t, void* found) {
  auto& [entry, begin, end] = *static_cast<std::array<uint64_t, 3>*>(found);
  uint64_t last = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    last = std::max<uint64_t>(last, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
  }
  if (entry - info->dlpi_addr >= last) return 0;
  begin = info->dlpi_addr;
  end = info->dlpi_addr + last;
  return 1;
}

// What emu_launch is asked for.
struct Call {
  void *entry, *op;
  uint32_t grid, threads;
  uint64_t shared_bytes;
  const void* params;
  uint64_t param_bytes;
  Settings settings;
};

bool set_up(const Call& call) {
  const auto& [entry, op, grid, threads, shared_bytes, params, param_bytes, settings] = call;
  launch.settings = settings;
  launch.random.state = settings.seed;
  launch.num_blocks = grid;
  launch.num_threads = threads;
  launch.dynamic_bytes = shared_bytes;
  launch.params.resize(param_bytes / sizeof(ParamBytes) + 1);
  memcpy(launch.params.data(), params, param_bytes);
  launch.param_bytes = param_bytes;
  launch.entry = reinterpret_cast<void (*)(const void*)>(entry);
  launch.op = reinterpret_cast<decltype(launch.op)>(op);
  std::array<uint64_t, 3> image{reinterpret_cast<uint64_t>(entry), 0, 0};
  dl_iterate_phdr(find_image, &image);
  launch.keeps_old = settings.uninitialised == 2;
  launch.image_begin = image[1];
  launch.image_end = image[2];
  const uint64_t num_agents = uint64_t(grid) * block_agents;
  if (threads == 0 || threads > most_threads || num_agents >= uint64_t(1) << 32) {
    say("LAUNCH of %u blocks of %u threads: at most 2^19 - 1 of 1 to 1024\n", grid, threads);
    return false;
  }
  Clock::begin(num_agents);
  return true;
}

// What was suspected comes first, but after a race: that may be why.
void join_suspicion() {
  if (launch.suspicion.empty()) return;
  launch.has_failed = true;
  const bool is_race = launch.report.rfind("RACE", 0) == 0;
  launch.report = is_race ? launch.report + launch.suspicion : launch.suspicion + launch.report;
}

void tear_down() {
  for_each_region([](Region& region) { region.take_old(); });
  forget_late_stores();
  forget_copies();
  abandon_blocks();
  forget_all_accesses();
  last_report = std::move(launch.report);
  launch = Launch();
}

// Runs a kernel; `is_second`: with other values in shared memory where nobody wrote.
bool run(const Call& call, bool is_second) {
  bool is_good = set_up(call);
  launch.is_second = is_second;
  is_good = is_good && run_launch();
  join_suspicion();
  return is_good && !launch.has_failed;
}

// Runs a kernel that has loaded what nobody wrote once more; true: that made no difference.
bool run_again(Call call) {
  const std::string reads = std::move(launch.unwritten_reads);
  const Stats stats = launch.stats;
  const Changes first = take_back();
  tear_down();
  call.settings.max_steps *= 2;
  const bool is_good = run(call, true);
  const Changes second = take_back();
  std::string other = is_good ? first_difference(first, second) : "";
  tear_down();
  launch.stats = stats;
  put(first);
  if (is_good && other.empty()) return true;
  other = is_good ? "leaves other bytes at " + other + "\n" : "ends in\n  " + last_report;
  last_report = "UNINITIALISED: " + reads + "; another value there " + other;
  return false;
}

}  // namespace

}  // namespace emu

using namespace emu;

extern "C" {

void* emu_alloc(uint64_t size, const char* name) {
  std::lock_guard lock(serving);
  return allocate(size, name);
}

void emu_free(void* memory) {
  std::lock_guard lock(serving);
  deallocate(memory);
}

void emu_register(void* memory, uint64_t size, const char* name) {
  std::lock_guard lock(serving);
  add_region(memory, size, name, true);
}

void emu_unregister(void* memory) {
  std::lock_guard lock(serving);
  remove_region(memory);
}

int emu_copy(void* target, const void* source, uint64_t bytes) {
  std::lock_guard lock(serving);
  Side to, from;
  if (!find_side(target, bytes, "copy", to) || !find_side(source, bytes, "copy", from)) return 1;
  memmove(target, source, bytes);
  copy_written(to, from, bytes);
  return 0;
}

int emu_fill(void* target, uint64_t pitch, const void* word, uint64_t word_bytes, uint64_t width,
             uint64_t height) {
  std::lock_guard lock(serving);
  for (uint64_t row = 0; row < height; ++row) {
    char* begin = static_cast<char*>(target) + row * pitch;
    Side side;
    if (!find_side(begin, width * word_bytes, "fill", side)) return 1;
    for (uint64_t i = 0; i < width; ++i) memcpy(begin + i * word_bytes, word, word_bytes);
    copy_written(side, {nullptr, 0}, width * word_bytes);
  }
  return 0;
}

int emu_launch(void* entry, void* op, uint32_t grid, uint32_t threads, uint64_t shared_bytes,
               const void* params, uint64_t param_bytes, const Settings* settings) {
  std::lock_guard lock(serving);
  launch.stats = Stats{};
  const Call call{entry, op, grid, threads, shared_bytes, params, param_bytes, *settings};
  const bool is_good = run(call, false);
  launch.stats.clock_bytes = Clock::most_bytes();
  if (is_good && !launch.unwritten_reads.empty()) return run_again(call) ? 0 : 1;
  if (!launch.unwritten_reads.empty())
    launch.report += "  before: " + launch.unwritten_reads + "\n";
  const Stats stats = launch.stats;
  tear_down();
  launch.stats = stats;
  return is_good ? 0 : 1;
}

const char* emu_report() { return last_report.c_str(); }

void emu_stats(uint64_t* out) {
  std::lock_guard lock(serving);
  static_assert(sizeof(Stats) == emu_num_stats * sizeof(uint64_t));
  memcpy(out, &launch.stats, sizeof(Stats));
}

void __tsan_read_range(void* address, uint64_t size);

// The numbers that an operator captures, for its code to read.
uint64_t emu_numbers[16];

// The function that makes elements of what is read, of the kernel that runs next.
void (*emu_input)(void*, const void*, const void* const*);

void gpualgo_input(void* result, const void* state, const void* const* arguments) {
  emu_input(result, state, arguments);
}

void gpualgo_operator(void* result, const void* state, const void* const* arguments) {
  if (state != nullptr) {
    __tsan_read_range(const_cast<void*>(state), sizeof(emu_numbers));
    memcpy(emu_numbers, state, sizeof(emu_numbers));
  }
  launch.op(result, state, arguments);
}
}
