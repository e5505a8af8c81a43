#pragma once
// Chunks of a stage's state whose headers are here and whose bytes are on their way.
// Thread: loop only.   Bounds: one of an index and peer; who adds only what the fetcher asked for keeps to its window.
#include <algorithm>
#include <compare>
#include <map>
#include <optional>

#include "transport/messages.h"
#include "transport/transport.h"

namespace shoal {

class InboundChunks {
 public:
  // False: that chunk is announced by that peer already.
  bool add(const PeerId& from, TransferId transfer, const Chunk& chunk) {
    const bool announced = std::any_of(chunks_.begin(), chunks_.end(), [&](const auto& item) {
      return item.first.peer == from && item.second.index == chunk.index;
    });
    if (!announced) chunks_[{.peer = from, .transfer = transfer}] = chunk;
    return !announced;
  }
  // Whose bytes are on their way; none: that chunk was not announced by that peer.
  std::optional<TransferId> transfer_of(const PeerId& from, const Chunk& chunk) const {
    for (const auto& [place, one] : chunks_)
      if (place.peer == from && one.version == chunk.version && one.index == chunk.index) return place.transfer;
    return std::nullopt;
  }
  // The header to these bytes; none when they belong to something else.
  std::optional<Chunk> take(const PeerId& from, TransferId transfer) {
    const auto found = chunks_.find({.peer = from, .transfer = transfer});
    if (found == chunks_.end()) return std::nullopt;
    const Chunk chunk = found->second;
    chunks_.erase(found);
    return chunk;
  }
  // Chunks of another version are not wanted any more: their senders may spare themselves the rest.
  template <class Refuse>
  void refuse_others(Version version, Refuse refuse) {
    std::erase_if(chunks_, [&](const auto& item) {
      if (item.second.version == version || item.second.version == Version(0)) return false;
      refuse(item.first.peer, item.first.transfer);
      return true;
    });
  }
  // Its link is down.
  void drop(const PeerId& from) {
    std::erase_if(chunks_, [&](const auto& item) { return item.first.peer == from; });
  }

 private:
  struct Place {
    PeerId peer;
    TransferId transfer = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::map<Place, Chunk> chunks_;
};

}  // namespace shoal
