#pragma once
// Short ways to name things in tests of router/.
#include "common/time.h"
#include "router/commit_book.h"

namespace shoal::naming {

inline constexpr std::uint64_t kTrainer = 9;

inline Session session(std::uint64_t tag) { return {tag, tag * 1000 + 1}; }
inline EntryName entry_name(std::uint64_t tag, std::uint64_t serial) { return {session(tag), serial}; }
inline Lease lease(std::uint64_t tag, std::uint64_t serial) { return {session(tag), serial}; }
inline MicrobatchId id(std::uint64_t serial) { return {kTrainer, serial}; }
inline PeerId peer(std::uint64_t tag) {
  PeerId peer;
  peer.bytes[0] = static_cast<std::uint8_t>(tag);
  return peer;
}
inline Member member(std::uint64_t tag) {
  Member member;
  member.session = session(tag);
  member.peer = peer(tag);
  member.serving = true;
  return member;
}
inline TimePoint at(Duration since_start) { return TimePoint(Duration(1000s)) + since_start; }

}  // namespace shoal::naming
