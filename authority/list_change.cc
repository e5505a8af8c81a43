#include "authority/list_change.h"

#include <algorithm>
#include <string>

#include "common/byte_codec.h"
#include "common/crypto/hash.h"
#include "common/crypto/sign.h"
#include "transport/envelope.h"

namespace shoal {

namespace {

StageAnchor anchor_of(const StageMembers& stage) {
  return {stage.version, stage.digest, stage.secured, stage.round, stage.step};
}

Version moved(Version version, Version before, Version after) { return version == before ? after : version; }

StageChange stage_change(const StageMembers& from, const StageMembers& to) {
  StageChange change;
  change.stage = to.stage;
  change.epoch = to.epoch;
  if (anchor_of(from).fields() != anchor_of(to).fields()) change.anchor = anchor_of(to);
  auto old = from.members.begin();
  for (const Member& member : to.members) {
    for (; old != from.members.end() && old->session < member.session; ++old) change.gone.push_back(old->session);
    if (old == from.members.end() || old->session != member.session) {
      change.joined.push_back(member);
      continue;
    }
    if (old->peer != member.peer || old->whereabouts != member.whereabouts) {
      change.gone.push_back(old->session);
      change.joined.push_back(member);
    } else if (old->serving != member.serving || moved(old->version, from.version, to.version) != member.version) {
      change.changed.push_back({member.session, member.serving, member.version});
    }
    ++old;
  }
  for (; old != from.members.end(); ++old) change.gone.push_back(old->session);
  return change;
}

Error contradiction(const std::string& what) {
  return make_error(ErrorCode::kMalformed, "a change of the member list that does not fit: " + what);
}

// Where the session stands, or would.
std::vector<Member>::iterator place_of(StageMembers& stage, const Session& session) {
  return std::lower_bound(stage.members.begin(), stage.members.end(), session,
                          [](const Member& member, const Session& wanted) { return member.session < wanted; });
}
bool stands(const StageMembers& stage, std::vector<Member>::iterator place, const Session& session) {
  return place != stage.members.end() && place->session == session;
}

Status apply_stage(const StageChange& change, StageMembers& stage) {
  stage.epoch = change.epoch;
  if (change.anchor) {
    for (Member& member : stage.members) member.version = moved(member.version, stage.version, change.anchor->version);
    stage.version = change.anchor->version;
    stage.digest = change.anchor->digest;
    stage.secured = change.anchor->secured;
    stage.round = change.anchor->round;
    stage.step = change.anchor->step;
  }
  for (const Session& session : change.gone) {
    const auto place = place_of(stage, session);
    if (!stands(stage, place, session)) return contradiction("session " + short_name(session) + " is not there to go");
    stage.members.erase(place);
  }
  for (const Member& member : change.joined) {
    const auto place = place_of(stage, member.session);
    if (stands(stage, place, member.session))
      return contradiction("session " + short_name(member.session) + " is there already");
    stage.members.insert(place, member);
  }
  for (const MemberChange& member : change.changed) {
    const auto place = place_of(stage, member.session);
    if (!stands(stage, place, member.session))
      return contradiction("session " + short_name(member.session) + " is not there to change");
    place->serving = member.serving;
    place->version = member.version;
  }
  return {};
}

// The prefix tells it from everything else that the key signs.
std::vector<std::uint8_t> signed_text(const RunId& run, ByteView body) {
  std::string text = "shoal list change 1\n" + std::string(run.bytes.begin(), run.bytes.end());
  text.append(body.begin(), body.end());
  return {text.begin(), text.end()};
}

}  // namespace

std::uint64_t list_id(ByteView packed) { return get_le<std::uint64_t>(blake2b_256(packed).bytes.data()); }

ListChange change_between(const MemberList& from, const MemberList& to) {
  SHOAL_CHECK(from.stages.size() == to.stages.size());
  ListChange change;
  change.base = from.epoch;
  change.epoch = to.epoch;
  for (std::size_t i = 0; i < to.stages.size(); ++i) {
    StageChange stage = stage_change(from.stages[i], to.stages[i]);
    const bool members = !stage.gone.empty() || !stage.joined.empty() || !stage.changed.empty();
    if (members || stage.anchor || from.stages[i].epoch != stage.epoch) change.stages.push_back(std::move(stage));
  }
  if (from.relays != to.relays) change.relays = to.relays;
  return change;
}

Status apply_change(const ListChange& change, MemberList& list) {
  for (const StageChange& stage : change.stages) {
    const auto at = std::find_if(list.stages.begin(), list.stages.end(),
                                 [&](const StageMembers& other) { return other.stage == stage.stage; });
    if (at == list.stages.end()) return contradiction("there is no stage " + std::to_string(stage.stage.value));
    SHOAL_TRY(apply_stage(stage, *at));
  }
  if (change.relays) list.relays = *change.relays;
  list.epoch = change.epoch;
  return {};
}

Result<MembersChange> sign_change(const ListChange& change, const RunId& run, const SignBytes& sign) {
  MembersChange message;
  SHOAL_ASSIGN(message.body, pack_list_change(change));
  message.signature = sign(signed_text(run, message.body));
  return message;
}

Result<ListChange> open_list_change(const MembersChange& message, const RunId& run, std::optional<Epoch> known) {
  auto change = parse_list_change(message.body);
  if (change.ok() && known && change->epoch <= *known)
    return make_error(ErrorCode::kStale, "a change of the member list that is known");
  Signature signature;
  if (message.signature.size() != signature.size())
    return make_error(ErrorCode::kCorrupt, "a change of the member list without a signature");
  std::copy(message.signature.begin(), message.signature.end(), signature.begin());
  if (!verify(as_peer(run), signed_text(run, message.body), signature))
    return make_error(ErrorCode::kCorrupt, "a change of the member list that the run's key did not sign");
  return change;
}

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
