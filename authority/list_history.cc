#include "authority/list_history.h"

#include <algorithm>

#include "transport/envelope.h"

namespace shoal {

Result<Message> ListHistory::tell(const MemberList& list) {
  SHOAL_ASSIGN(std::vector<std::uint8_t> body, pack_member_list(list));
  const std::uint64_t id = list_id(body);
  const bool first = whole_.body.empty();
  if (!first) {
    ListChange change = change_between(list_, list);
    change.base_id = id_;
    change.id = id;
    if (Result<MembersChange> message = sign_change(change, run_, sign_);
        message.ok() && message->body.size() < body.size()) {
      changes_.push_back({list_.epoch, id_, *std::move(message)});
      if (changes_.size() > kChangesKept) changes_.pop_front();
    } else {
      changes_.clear();
    }
  }
  list_ = list;
  id_ = id;
  whole_ = Members{std::move(body), {}};
  if (changes_.empty()) return Message(whole());
  return Message(changes_.back().message);
}

const Members& ListHistory::whole() {
  if (whole_.signature.empty()) whole_.signature = sign_(whole_.body);
  return whole_;
}

std::vector<Message> ListHistory::since(Epoch epoch, std::uint64_t id) {
  if (whole_.body.empty() || (epoch == list_.epoch && id == id_)) return {};
  const auto from = std::find_if(changes_.begin(), changes_.end(),
                                 [&](const Told& told) { return told.base == epoch && told.base_id == id; });
  std::vector<Message> messages;
  std::size_t bytes = 0;
  for (auto at = from; at != changes_.end(); ++at) {
    messages.emplace_back(at->message);
    bytes += at->message.body.size();
  }
  if (messages.empty() || bytes >= whole_.body.size()) return {Message(whole())};
  return messages;
}

}  // namespace shoal
