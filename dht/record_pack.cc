// How records are written; how they are read: dht/record.cc.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/crypto/text_codes.h"
#include "common/hex.h"
#include "dht/record.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

// A part of how a run stands has room for a peer whatever its numbers are.
constexpr std::uint64_t kCountMax = 999'999'999'999'999;
constexpr std::uint32_t kSmallCountMax = 99'999;
constexpr std::string_view kSignatureKey = ",\"sig\":\"";
constexpr std::string_view kEnd = "\"}";

Result<std::string> dump(const Json& body) {
  std::string text;
  try {
    text = body.dump(-1, ' ', true, Json::error_handler_t::strict);
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kInput, std::string("record: a text is not UTF-8: ") + e.what());
  }
  // Compact JSON has spaces in strings only; tools that take a record as one word must be able to carry it.
  std::string out;
  for (char c : text) c == ' ' ? out += "\\u0020" : out += c;
  return out;
}

Result<std::string> sign_text(const Json& body, const KeyPair& key) {
  SHOAL_ASSIGN(std::string text, dump(body));
  text.pop_back();  // the closing brace comes back behind the signature
  const std::string message = std::string(kRecordDomain) + text;
  const Signature signature = key.sign({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
  text += kSignatureKey;
  text += base64url_of(signature);
  text += kEnd;
  return text;
}

double rounded(double value, double steps) { return std::isfinite(value) ? std::round(value * steps) / steps : 0; }

// Adds as many of `addresses` as fit, in their order: they stand best first.
// ERRORS: kTooLarge (not even `fewest` of them do).
Result<std::string> pack_with_addresses(Json body, const std::vector<std::string>& addresses, std::size_t fewest,
                                        const KeyPair& key) {
  for (const std::string& address : addresses) {
    if (Status status = check_address(address); !status.ok())
      return make_error(ErrorCode::kInput, status.error().message);
  }
  std::size_t count = std::min(addresses.size(), kRecordAddressesMax);
  for (;; --count) {
    body["addr"] = std::vector<std::string>(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(count));
    SHOAL_ASSIGN(std::string text, sign_text(body, key));
    if (text.size() <= kRecordBytesMax) return text;
    if (count <= fewest)
      return make_error(ErrorCode::kTooLarge, "record: " + std::to_string(text.size()) + " bytes, limit 512");
  }
}

std::uint64_t unix_seconds(WallTime time) {
  const auto count = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return count < 0 ? 0 : static_cast<std::uint64_t>(count);
}

Status check_run_key(const RunId& run, const KeyPair& key) {
  if (as_peer(run) == key.id()) return {};
  return make_error(ErrorCode::kInput, "record: the key is not that of run " + short_name(run));
}

using Room = FigureRecord::Room;

template <class Snapshot>
Json figure_of(const Figure<Snapshot>& row, const Snapshot& figures) {
  const FigureRecord& form = row.places.record;
  FigureValue value = row.of(figures);
  if (const auto* text = std::get_if<std::string>(&value)) return text->substr(0, static_cast<std::size_t>(form.max));
  if (const auto* real = std::get_if<double>(&value)) return rounded(std::clamp(*real, 0.0, form.max), form.steps);
  const auto count = std::get<std::uint64_t>(value);
  return std::min(count / form.unit + (count % form.unit != 0), static_cast<std::uint64_t>(form.max));
}

template <class Snapshot>
void add_figures(Json& body, std::span<const Figure<Snapshot>> rows, const Snapshot& figures, Room room) {
  for (const Figure<Snapshot>& row : rows)
    if (row.places.record.key != nullptr && row.places.record.room == room &&
        (room == Room::kAlways || row.is_told(figures)))
      body[row.places.record.key] = figure_of(row, figures);
}

// What stands in every record is no number of theirs that would be refused.
bool is_in_range(const PeerFigures& figures) {
  return std::ranges::all_of(peer_figures(), [&](const PeerFigure& row) {
    const FigureRecord& form = row.places.record;
    if (form.key == nullptr || form.room != Room::kAlways) return true;
    const double number = row.number_of(figures);
    return number >= 0 && number <= form.max;
  });
}

void add_disk(Json& body, const PeerRecord& record) {
  if (!record.on_disk) return;
  const std::uint64_t made = unix_seconds(record.expires - kRecordTtl), saved = unix_seconds(record.on_disk->saved);
  body["disk"] = {std::min(record.on_disk->version.value, kCountMax), made > saved ? made - saved : 0};
}

std::string text_of(const std::vector<MemberRow>& peers) {
  std::vector<std::uint8_t> bytes;
  for (const MemberRow& peer : peers) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(peer.tag >> shift));
    bytes.push_back(static_cast<std::uint8_t>(peer.stage.value));
    bytes.push_back(static_cast<std::uint8_t>(peer.place));
    bytes.push_back(static_cast<std::uint8_t>(peer.quiet_s >> 8));
    bytes.push_back(static_cast<std::uint8_t>(peer.quiet_s));
  }
  return base64url_of(bytes);
}

Json body_of(const StandingRecord& record) {
  Json body;
  body["v"] = 1;
  body["run"] = hex_of(record.run);
  body["part"] = record.part;
  body["parts"] = record.parts;
  if (record.part == 0) {
    body["state"] = name_of(record.state);
    if (record.since) body["since"] = unix_seconds(*record.since);
    if (record.stage) body["at"] = record.stage->value;
    if (record.stranded) body["cut"] = true;
    if (!record.last.empty())
      body["last"] = std::vector<std::string>(
          record.last.begin(),
          record.last.begin() + static_cast<std::ptrdiff_t>(std::min(record.last.size(), kRecordLastMax)));
    for (const Room room : {Room::kAlways, Room::kUsually}) add_figures(body, launch_figures(), record.figures, room);
    if (record.unnamed > 0) body["unnamed"] = std::min(record.unnamed, kSmallCountMax);
  }
  body["who"] = text_of(record.peers);
  body["seq"] = record.sequence;
  body["exp"] = unix_seconds(record.expires);
  return body;
}

// How many peers one more part like this has room for.
Result<std::size_t> peers_within(StandingRecord part, const KeyPair& key) {
  constexpr std::size_t kTextOfPeer = kMemberRowBytes / 3 * 4;
  part.peers.clear();
  SHOAL_ASSIGN(const std::string text, sign_text(body_of(part), key));
  if (text.size() + kTextOfPeer > kRecordBytesMax)
    return make_error(ErrorCode::kTooLarge, "record: " + std::to_string(text.size()) + " bytes without a peer");
  return (kRecordBytesMax - text.size()) / kTextOfPeer;
}

}  // namespace

Result<std::string> pack_record(const PeerRecord& record, const KeyPair& key) {
  if (record.peer != key.id())
    return make_error(ErrorCode::kInput, "record: the key is not that of peer " + short_name(record.peer));
  if (!is_in_range(record.figures)) return make_error(ErrorCode::kInput, "record: a figure is out of range");
  Json body;
  body["v"] = 1;
  body["run"] = hex_of(record.run);
  body["peer"] = hex_of(record.peer);
  body["inc"] = hex_of_word(record.session.incarnation);
  body["stage"] = record.stage.value;
  body["addr"] = Json::array();
  add_figures(body, peer_figures(), record.figures, Room::kAlways);
  body["ver"] = record.version.value;
  body["on"] = record.serving;
  Json with_figures = body;
  add_figures(with_figures, peer_figures(), record.figures, Room::kUsually);
  add_disk(with_figures, record);
  Json with_all = with_figures;
  add_figures(with_all, peer_figures(), record.figures, Room::kSpare);
  for (Json* one : {&with_all, &with_figures, &body}) {
    (*one)["seq"] = record.sequence;
    (*one)["exp"] = unix_seconds(record.expires);
  }
  // What is for people gives way, what is spare first: where others can dial comes before it.
  const std::size_t all = std::min(record.whereabouts.addresses.size(), kRecordAddressesMax);
  for (Json* one : {&with_all, &with_figures}) {
    auto text = pack_with_addresses(std::move(*one), record.whereabouts.addresses, all, key);
    if (text.ok() || text.code() != ErrorCode::kTooLarge) return text;
  }
  return pack_with_addresses(std::move(body), record.whereabouts.addresses, 1, key);
}

Result<std::string> pack_record(const RunRecord& record, const KeyPair& run_key) {
  SHOAL_TRY(check_run_key(record.run, run_key));
  if (record.name.size() > kRecordNameBytesMax)
    return make_error(ErrorCode::kInput, "record: the run's name is longer than 64 bytes");
  Json body;
  body["v"] = 1;
  body["run"] = hex_of(record.run);
  body["name"] = record.name;
  body["stages"] = record.stages;
  body["manifest"] = hex_of(record.manifest);
  if (record.ended) body["end"] = record.ended->substr(0, kRecordEndBytesMax);
  body["addr"] = Json::array();
  body["seq"] = record.sequence;
  body["exp"] = unix_seconds(record.expires);
  return pack_with_addresses(std::move(body), record.whereabouts.addresses, 1, run_key);
}

Result<std::vector<std::string>> pack_standing(const StandingRecord& whole, const KeyPair& run_key) {
  SHOAL_TRY(check_run_key(whole.run, run_key));
  // What one of each kind has room for, its numbers at their longest.
  StandingRecord longest = whole;
  longest.parts = kStandingPartsMax;
  longest.unnamed = UINT32_MAX;
  SHOAL_ASSIGN(const std::size_t first, peers_within(longest, run_key));
  longest.part = kStandingPartsMax - 1;
  SHOAL_ASSIGN(const std::size_t later, peers_within(longest, run_key));
  const std::size_t rest = whole.peers.size() - std::min(first, whole.peers.size());
  const std::size_t parts = std::min(1 + (rest + later - 1) / later, kStandingPartsMax);
  const std::size_t named = std::min(whole.peers.size(), first + (parts - 1) * later);
  std::vector<std::string> texts;
  for (std::size_t part = 0, at = 0; part < parts; ++part) {
    StandingRecord one = whole;
    one.part = static_cast<std::uint16_t>(part);
    one.parts = static_cast<std::uint16_t>(parts);
    one.unnamed = static_cast<std::uint32_t>(whole.peers.size() - named);
    const std::size_t end = std::min(whole.peers.size(), at + (part == 0 ? first : later));
    one.peers.assign(whole.peers.begin() + static_cast<std::ptrdiff_t>(at),
                     whole.peers.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
    SHOAL_ASSIGN(std::string text, sign_text(body_of(one), run_key));
    SHOAL_CHECK(text.size() <= kRecordBytesMax);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace shoal
