// Memory that kernels may touch: where it begins and ends, which of its bytes were written, who
// accessed them last, and the words by which threads talk to each other.
#ifndef GPUALGO_EMULATOR_MEMORY_H
#define GPUALGO_EMULATOR_MEMORY_H

#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clocks.h"
#include "words.h"

namespace emu {

enum Kind : uint8_t {
  is_read = 0,
  is_write = 1,
  is_relaxed = 2,  // of a word that others may change meanwhile
  is_narrow = 4,   // … if they are of the same block
  is_copy = 8,     // asynchronous
  is_bulk = 16     // … and by the other proxy
};

// An access as it is remembered.
struct Access {
  Agent agent;
  uint32_t epoch;
  uint32_t place;  // in the kernel's library
  uint8_t bytes;   // of the cell, one bit each; 0: none
  uint8_t kind;
};

// What is known of 8 bytes.
struct Cell {
  Access accesses[4];
};

// Bytes of a region, and which of them were written.
struct OldPage {
  static constexpr uint64_t size = 4096;
  uint64_t number, count;  // of bytes: the last page of a region may be short
  std::vector<char> bytes;
  std::vector<uint64_t> written;  // empty: all
  bool is_written(uint64_t i) const { return written.empty() || written[i / 64] >> i % 64 & 1; }
};

class Region {
 public:
  Region(uint64_t begin, uint64_t size, std::string name, bool is_shared, bool is_written);

  uint64_t begin, size;
  std::string name;
  bool is_shared;
  // By the number of their 8 bytes; empty, or null where there are none.
  std::vector<std::unique_ptr<Words>> words;

  const char* space() const { return is_shared ? "shared" : "global"; }
  bool holds(uint64_t address) const { return address - begin < size; }

  // The cell with this number; all are forgotten by `forget_accesses`.
  Cell& cell(uint64_t number);
  void forget_accesses();

  // Whether all bytes were written; the first that was not.
  bool is_written(uint64_t offset, uint64_t bytes) const;
  uint64_t first_unwritten(uint64_t offset, uint64_t bytes) const;
  void set_written(uint64_t offset, uint64_t bytes, bool value = true);

  // Keeps the pages of these bytes as they are, until `take_old`.
  void keep_old(uint64_t offset, uint64_t bytes);
  std::vector<OldPage> take_old();
  OldPage page(uint64_t number) const;
  void put(const OldPage& page);

 private:
  static constexpr uint64_t page_cells = 512;
  struct Page {
    uint64_t era = 0;
    Cell cells[page_cells];
  };
  std::vector<std::unique_ptr<Page>> pages;
  uint64_t era = 1;
  std::vector<uint64_t> written;  // a bit per byte; empty: all were
  std::vector<OldPage> old_pages;
  std::vector<bool> has_old;
};

// The allocation or registered memory around an address, or null.
Region* region_at(uint64_t address);
// What to say of an address that lies nowhere: which allocation is next to it, or was there.
std::string neighbour_of(uint64_t address);
void for_each_region(const std::function<void(Region&)>& call);
// Before a launch.
void forget_all_accesses();

}  // namespace emu

#endif
