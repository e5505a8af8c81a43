#pragma once
// Serials that were seen, a bit each: what rises by one from 0 takes an eighth of a byte a serial, and a single serial
// far ahead takes a page. Value.
#include <array>
#include <cstdint>
#include <unordered_map>

namespace shoal {

class SerialSet {
 public:
  // False: it was there.
  bool insert(std::uint64_t serial) {
    std::uint64_t& word = pages_[serial / kPage][serial % kPage / 64];
    const std::uint64_t bit = std::uint64_t{1} << serial % 64;
    if ((word & bit) != 0) return false;
    word |= bit;
    ++size_;
    return true;
  }
  bool contains(std::uint64_t serial) const {
    const auto page = pages_.find(serial / kPage);
    return page != pages_.end() && (page->second[serial % kPage / 64] >> serial % 64 & 1) != 0;
  }
  std::uint64_t size() const { return size_; }

 private:
  static constexpr std::uint64_t kPage = 4096;
  std::unordered_map<std::uint64_t, std::array<std::uint64_t, kPage / 64>> pages_;
  std::uint64_t size_ = 0;
};

}  // namespace shoal
