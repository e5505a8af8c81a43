#include "router/lost_book.h"

#include <utility>

#include "events/lost_causes.h"

namespace shoal {

void LostBook::add(Listing listing) {
  listing.cause.resize(std::min(listing.cause.size(), kCauseMax));
  if (is_lost_by_end(listing.cause)) left_at_end_.push_back(listing);
  listings_.insert_or_assign(listing.entry_name, std::move(listing));
}

const LostBook::Listing* LostBook::find(const EntryName& entry_name) const {
  const auto it = listings_.find(entry_name);
  return it == listings_.end() ? nullptr : &it->second;
}

void LostBook::pass(const EntryName& entry_name) {
  const auto listing = listings_.extract(entry_name);
  if (listing.empty()) return;
  count(listing.mapped(), below_.lines);
  ++below_.pairs;
}

LostBook::Lines LostBook::lines() const {
  Lines all = below_.lines;
  for (const auto& [entry_name, listing] : listings_) count(listing, all);
  return all;
}

void LostBook::count(const Listing& listing, Lines& lines) {
  const auto line = std::tuple(listing.entry_name.session.peer_tag, listing.stage, listing.cause);
  if (lines.size() < kLinesMax || lines.contains(line))
    ++lines[line];
  else
    ++lines[{0, listing.stage, "other causes"}];
}

}  // namespace shoal
