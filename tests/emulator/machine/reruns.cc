#include "reruns.h"

#include <string.h>

#include <algorithm>

#include "launch.h"
#include "report.h"

namespace emu {

namespace {

constexpr size_t most_told = 4;

bool is_before(const ChangedPage& a, const ChangedPage& b) {
  return a.region != b.region ? a.region->begin < b.region->begin : a.page.number < b.page.number;
}

const ChangedPage* find(const Changes& changes, const ChangedPage& like) {
  auto found = std::lower_bound(changes.begin(), changes.end(), like, is_before);
  return found != changes.end() && !is_before(like, *found) ? &*found : nullptr;
}

// A page as a run has left it: where it changed nothing, as it is now.
OldPage left_by(const Changes& run, const ChangedPage& like) {
  const ChangedPage* found = find(run, like);
  return found != nullptr ? found->page : like.region->page(like.page.number);
}

std::string difference(const ChangedPage& changed, const OldPage& a, const OldPage& b) {
  const uint64_t first = changed.page.number * OldPage::size;
  for (uint64_t i = 0; i < changed.page.count; ++i) {
    const bool is_known = a.is_written(i) && b.is_written(i);
    if (!is_known || a.bytes[i] == b.bytes[i]) continue;
    return address_name(*changed.region, first + i);
  }
  return "";
}

}  // namespace

void will_write(Region& region, uint64_t offset, uint64_t bytes) {
  if (launch.keeps_old && !region.is_shared) region.keep_old(offset, bytes);
}

void note_unwritten(const std::string& read, uint32_t place) {
  auto& places = launch.unwritten_places;
  if (std::find(places.begin(), places.end(), place) != places.end()) return;
  places.push_back(place);
  if (places.size() > most_told) return;
  launch.unwritten_reads += (places.size() > 1 ? "; also " : "") + read;
}

Changes take_back() {
  Changes changes;
  for_each_region([&](Region& region) {
    for (OldPage& old : region.take_old()) {
      changes.push_back({&region, region.page(old.number)});
      region.put(old);
    }
  });
  std::sort(changes.begin(), changes.end(), is_before);
  return changes;
}

void put(const Changes& changes) {
  for (const auto& [region, page] : changes) region->put(page);
}

std::string first_difference(const Changes& first, const Changes& second) {
  for (const Changes* run : {&first, &second}) {
    for (const ChangedPage& changed : *run) {
      const OldPage a = left_by(first, changed), b = left_by(second, changed);
      std::string found = difference(changed, a, b);
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace emu
