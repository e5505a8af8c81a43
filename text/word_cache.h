#pragma once
// The tokens of short words that were merged before. A word has one place, which the latest takes: so it is bounded.
// Thread: one at a time.
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace shoal {

class WordCache {
 public:
  static constexpr std::size_t kWordBytesMax = 23;
  static constexpr std::size_t kTokensMax = 9;
  static constexpr std::size_t kPlaces = 1 << 15;  // of 64 bytes: 2 MiB

  // A word as the cache compares it. REQUIRES: 1..kWordBytesMax bytes.
  struct Key {
    std::array<std::uint64_t, 3> words{};
    explicit Key(std::string_view text) {
      std::memcpy(words.data(), text.data(), text.size());
      words[2] |= std::uint64_t{text.size()} << 56;  // so that a word that ends with NUL is another
    }
    bool operator==(const Key&) const = default;
    std::size_t place() const {
      std::uint64_t mixed = words[0] * 0x9E3779B97F4A7C15u ^ words[1] * 0xC2B2AE3D27D4EB4Fu ^ words[2];
      mixed ^= mixed >> 32;
      return static_cast<std::size_t>((mixed * 0xD6E8FEB86659FD93u) >> 40) & (kPlaces - 1);
    }
  };

  // Appends the tokens of a word that is there.
  bool append(const Key& key, std::vector<std::uint32_t>& ids) const {
    const Place& place = places_[key.place()];
    if (place.count == 0 || place.words != key.words) return false;
    ids.insert(ids.end(), place.ids.begin(), place.ids.begin() + place.count);
    return true;
  }
  void keep(const Key& key, std::span<const std::uint32_t> ids) {
    if (ids.empty() || ids.size() > kTokensMax) return;
    Place& place = places_[key.place()];
    place.words = key.words;
    place.count = static_cast<std::uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), place.ids.begin());
  }

 private:
  struct alignas(64) Place {
    std::array<std::uint64_t, 3> words{};
    std::uint32_t count = 0;  // 0: nothing is here
    std::array<std::uint32_t, kTokensMax> ids{};
  };
  std::vector<Place> places_ = std::vector<Place>(kPlaces);
};

}  // namespace shoal
