#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "allocations.h"

namespace emu {

Region::Region(uint64_t begin, uint64_t size, std::string name, bool is_shared, bool is_written)
    : begin(begin), size(size), name(std::move(name)), is_shared(is_shared) {
  if (!is_written) written.assign((size + 63) / 64, 0);
}

Cell& Region::cell(uint64_t number) {
  if (pages.empty()) pages.resize((size + 8 * page_cells - 1) / (8 * page_cells));
  std::unique_ptr<Page>& page = pages[number / page_cells];
  if (page == nullptr) page = std::make_unique<Page>();
  if (page->era != era) {
    memset(page->cells, 0, sizeof(page->cells));
    page->era = era;
  }
  return page->cells[number % page_cells];
}

void Region::forget_accesses() {
  ++era;
  words.clear();
}

uint64_t Region::first_unwritten(uint64_t offset, uint64_t bytes) const {
  if (written.empty()) return offset + bytes;
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    if (i % 64 == 0 && written[i / 64] == ~uint64_t(0)) {
      i += 63;
    } else if (!(written[i / 64] >> i % 64 & 1)) {
      return i;
    }
  }
  return offset + bytes;
}

bool Region::is_written(uint64_t offset, uint64_t bytes) const {
  if (written.empty()) return true;
  if (offset % 64 + bytes <= 64 && bytes < 64) {
    const uint64_t bits = (uint64_t(1) << bytes) - 1;
    return (written[offset / 64] >> offset % 64 & bits) == bits;
  }
  return first_unwritten(offset, bytes) >= offset + bytes;
}

void Region::set_written(uint64_t offset, uint64_t bytes, bool value) {
  if (written.empty()) return;
  for (const uint64_t end = offset + bytes; offset < end;) {
    const uint64_t count = std::min(end - offset, 64 - offset % 64);
    const uint64_t bits = (count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1) << offset % 64;
    written[offset / 64] = value ? written[offset / 64] | bits : written[offset / 64] & ~bits;
    offset += count;
  }
}

void Region::keep_old(uint64_t offset, uint64_t bytes) {
  if (has_old.empty()) has_old.resize((size + OldPage::size - 1) / OldPage::size);
  for (uint64_t i = offset / OldPage::size; i * OldPage::size < offset + bytes; ++i) {
    if (has_old[i]) continue;
    has_old[i] = true;
    old_pages.push_back(page(i));
  }
}

std::vector<OldPage> Region::take_old() {
  has_old.clear();
  return std::exchange(old_pages, {});
}

OldPage Region::page(uint64_t number) const {
  const uint64_t first = number * OldPage::size, count = std::min(size - first, OldPage::size);
  const char* bytes = reinterpret_cast<const char*>(begin + first);
  OldPage found{number, count, {bytes, bytes + count}, {}};
  if (!written.empty()) {
    found.written.assign(&written[first / 64], &written[(first + count - 1) / 64] + 1);
  }
  return found;
}

void Region::put(const OldPage& page) {
  const uint64_t first = page.number * OldPage::size;
  memcpy(reinterpret_cast<char*>(begin + first), page.bytes.data(), page.count);
  std::copy(page.written.begin(), page.written.end(), written.begin() + ptrdiff_t(first / 64));
}

namespace {

const uint64_t page_bytes = uint64_t(sysconf(_SC_PAGESIZE));  // larger on some aarch64
constexpr size_t most_freed = 256;

struct Freed {
  uint64_t begin, size;
  std::string name;
};

std::map<uint64_t, std::unique_ptr<Region>> regions;  // by their begin
Region* last_region;
std::deque<Freed> freed;  // whose addresses are not given again yet

uint64_t mapped_bytes(uint64_t size) {
  return (std::max<uint64_t>(size, 1) + page_bytes - 1) / page_bytes * page_bytes;
}
// With a page on either side that nobody may touch.
void* first_page(uint64_t begin) { return reinterpret_cast<void*>(begin - page_bytes); }

}  // namespace

Region* region_at(uint64_t address) {
  if (last_region != nullptr && last_region->holds(address)) return last_region;
  auto after = regions.upper_bound(address);
  if (after == regions.begin()) return nullptr;
  Region* found = (--after)->second.get();
  return found->holds(address) ? last_region = found : nullptr;
}

std::string neighbour_of(uint64_t address) {
  char text[400];
  for (const Freed& old : freed) {
    if (address - old.begin >= old.size) continue;
    snprintf(text, sizeof(text), "+%llu of %s, which was freed",
             static_cast<unsigned long long>(address - old.begin), old.name.c_str());
    return text;
  }
  auto after = regions.upper_bound(address);
  if (after != regions.begin()) {
    const Region& before = *std::prev(after)->second;
    const uint64_t past = address - before.begin - before.size;
    if (past < page_bytes) {
      snprintf(text, sizeof(text), "%llu bytes past the end of %s, which has %llu",
               static_cast<unsigned long long>(past), before.name.c_str(),
               static_cast<unsigned long long>(before.size));
      return text;
    }
  }
  if (after != regions.end() && after->first - address <= page_bytes) {
    snprintf(text, sizeof(text), "%llu bytes before %s",
             static_cast<unsigned long long>(after->first - address), after->second->name.c_str());
    return text;
  }
  snprintf(text, sizeof(text), "%#llx, in no allocation", static_cast<unsigned long long>(address));
  return text;
}

void for_each_region(const std::function<void(Region&)>& call) {
  for (auto& [begin, region] : regions) call(*region);
}

void forget_all_accesses() {
  for_each_region([](Region& region) { region.forget_accesses(); });
}

void* allocate(uint64_t size, const char* name) {
  const uint64_t bytes = mapped_bytes(size);
  void* memory = mmap(nullptr, bytes + 2 * page_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(memory) + page_bytes;
  mprotect(begin, bytes, PROT_READ | PROT_WRITE);
  memset(begin, 0xa5, size);
  add_region(begin, size, name, false);
  return begin;
}

void deallocate(void* memory) {
  auto found = regions.find(reinterpret_cast<uint64_t>(memory));
  if (found == regions.end()) return;
  const Region& region = *found->second;
  madvise(memory, mapped_bytes(region.size), MADV_DONTNEED);
  mprotect(memory, mapped_bytes(region.size), PROT_NONE);
  freed.push_back({region.begin, region.size, region.name});
  remove_region(memory);
  if (freed.size() > most_freed) {
    const Freed& oldest = freed.front();
    munmap(first_page(oldest.begin), mapped_bytes(oldest.size) + 2 * page_bytes);
    freed.pop_front();
  }
}

void add_region(void* memory, uint64_t size, const char* name, bool is_written) {
  const uint64_t begin = reinterpret_cast<uint64_t>(memory);
  regions[begin] =
      std::make_unique<Region>(begin, size, name == nullptr ? "memory" : name, false, is_written);
  last_region = nullptr;
}

void remove_region(void* memory) {
  regions.erase(reinterpret_cast<uint64_t>(memory));
  last_region = nullptr;
}

}  // namespace emu
