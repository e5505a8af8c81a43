#include "runtime/edge/base_book.h"

namespace shoal {

Base BaseBook::outgoing(SampleId sample) const {
  const auto it = outgoing_.find(sample);
  return it == outgoing_.end() || it->second.holders.empty() ? Base{} : it->second.base;
}

std::vector<Session> BaseBook::holders(SampleId sample, std::uint64_t hash) const {
  const auto it = outgoing_.find(sample);
  if (it == outgoing_.end() || it->second.base.hash != hash) return {};
  return {it->second.holders.begin(), it->second.holders.end()};
}

bool BaseBook::sends_delta(const Session& to, SampleId sample, std::uint64_t hash) {
  const auto it = outgoing_.find(sample);
  const bool can =
      hash != 0 && it != outgoing_.end() && it->second.base.hash == hash && it->second.holders.contains(to);
  ++(can ? counters_.deltas : counters_.keys);
  return can;
}

void BaseBook::lacks(const Session& to, SampleId sample) {
  ++counters_.lacking;
  if (const auto it = outgoing_.find(sample); it != outgoing_.end()) it->second.holders.erase(to);
}

void BaseBook::settled(const Session& to, SampleId sample, Base after) {
  Outgoing& kept = outgoing_[sample];
  if (kept.base.hash != after.hash) kept.holders.clear();
  if (replace(kept.base, std::move(after), bytes_out_))
    kept.holders.insert(to);
  else
    outgoing_.erase(sample);
}

Base BaseBook::incoming(const Session& from, SampleId sample, std::uint64_t hash) const {
  const auto it = incoming_.find({from, sample});
  return it == incoming_.end() || it->second.hash != hash ? Base{} : it->second;
}

Base BaseBook::incoming(const Session& from, SampleId sample, ByteView frame) const {
  const auto header = parse_frame_header(frame);
  return header.ok() && header->base_hash ? incoming(from, sample, *header->base_hash) : Base{};
}

void BaseBook::keep(const Session& from, SampleId sample, Base after) {
  if (!replace(incoming_[{from, sample}], std::move(after), bytes_in_)) incoming_.erase({from, sample});
}

bool BaseBook::replace(Base& old, Base base, std::uint64_t& bytes) {
  const std::uint64_t without = bytes - old.frame.size();
  const bool fits = without + base.frame.size() <= bytes_max_;
  if (!fits) ++counters_.no_room;
  bytes = without + (fits ? base.frame.size() : 0);
  counters_.bytes = bytes_out_ + bytes_in_;
  if (fits) old = std::move(base);
  return fits;
}

void BaseBook::forget(const Session& session) {
  for (auto it = outgoing_.begin(); it != outgoing_.end();) {
    it->second.holders.erase(session);
    if (it->second.holders.empty()) {
      bytes_out_ -= it->second.base.frame.size();
      it = outgoing_.erase(it);
    } else {
      ++it;
    }
  }
  const auto first = incoming_.lower_bound({session, SampleId(0)});
  auto last = first;
  for (; last != incoming_.end() && last->first.first == session; ++last) bytes_in_ -= last->second.frame.size();
  incoming_.erase(first, last);
  counters_.bytes = bytes_out_ + bytes_in_;
}

}  // namespace shoal
