#include "dht/record.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "common/crypto/text_codes.h"
#include "common/hex.h"
#include "common/host_port.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStateNames[] = {"waiting", "training", "parked", "ending", "ended"};  // of RunState
constexpr std::size_t kSignatureChars = 86;                                                  // 64 bytes in base64url
constexpr std::string_view kSignatureKey = ",\"sig\":\"";
constexpr std::string_view kEnd = "\"}";
constexpr std::size_t kTailBytes = kSignatureKey.size() + kSignatureChars + kEnd.size();
constexpr std::uint64_t kExpiryMax = 1ull << 33;  // Unix seconds, year 2242: far from overflow of WallTime

Error malformed(const std::string& what) { return make_error(ErrorCode::kMalformed, "record: " + what); }

Result<std::uint64_t> parse_hex_word(std::string_view text) {
  if (text.size() != 16) return malformed("\"inc\" is not 16 hex digits");
  std::uint64_t word = 0;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'a' && c <= 'f')) return malformed("\"inc\" is not lower-case hex");
    word = word << 4 | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return word;
}

// Checks size, alphabet and tail; the body as JSON with every key once.
Result<Json> parse_body(std::string_view text) {
  if (text.size() > kRecordBytesMax)
    return make_error(ErrorCode::kTooLarge, "record: " + std::to_string(text.size()) + " bytes, limit 512");
  for (char c : text)
    if (c <= 0x20 || c >= 0x7f) return malformed("a byte that is not printable ASCII");
  if (text.size() <= kTailBytes || text.substr(text.size() - kTailBytes, kSignatureKey.size()) != kSignatureKey ||
      text.substr(text.size() - kEnd.size()) != kEnd)
    return malformed("does not end in a signature");
  std::set<std::string> keys;
  bool twice = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) twice |= !keys.insert(value.get<std::string>()).second;
    return true;
  };
  Json body = Json::parse(text, watch, false);
  if (body.is_discarded() || !body.is_object()) return malformed("no JSON object");
  if (twice) return malformed("a key stands twice");
  return body;
}

Status check_signature(std::string_view text, const PeerId& signer) {
  const std::string_view body = text.substr(0, text.size() - kTailBytes);
  const auto bytes = parse_base64url(text.substr(body.size() + kSignatureKey.size(), kSignatureChars));
  if (!bytes.ok() || bytes->size() != sizeof(Signature)) return malformed("\"sig\" is not base64url of 64 bytes");
  Signature signature;
  std::copy(bytes->begin(), bytes->end(), signature.begin());
  const std::string message = std::string(kRecordDomain) + std::string(body);
  if (!verify(signer, {reinterpret_cast<const std::uint8_t*>(message.data()), message.size()}, signature))
    return make_error(ErrorCode::kCorrupt, "record: the signature does not fit " + short_name(signer));
  return {};
}

Result<std::uint64_t> number(const Json& body, const char* key, std::uint64_t max) {
  const auto found = body.find(key);
  if (found == body.end() || !found->is_number_unsigned())
    return malformed(std::string("no whole number \"") + key + "\"");
  const auto value = found->get<std::uint64_t>();
  if (value > max) return malformed(std::string("\"") + key + "\" is out of range");
  return value;
}

Result<double> real(const Json& body, const char* key, double max) {
  const auto found = body.find(key);
  if (found == body.end() || !found->is_number()) return malformed(std::string("no number \"") + key + "\"");
  const double value = found->get<double>();
  if (!std::isfinite(value) || value < 0 || value > max)
    return malformed(std::string("\"") + key + "\" is out of range");
  return value;
}

Result<std::string> text_at(const Json& body, const char* key, std::size_t bytes_max) {
  const auto found = body.find(key);
  if (found == body.end() || !found->is_string()) return malformed(std::string("no text \"") + key + "\"");
  auto value = found->get<std::string>();
  if (value.size() > bytes_max) return malformed(std::string("\"") + key + "\" is too long");
  for (char c : value)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return malformed(std::string("a control character in \"") + key + "\"");
  return value;
}

template <class Key>
Result<Key> key_at(const Json& body, const char* name) {
  SHOAL_ASSIGN(const std::string text, text_at(body, name, 64));
  const auto bytes = parse_hex32(text);
  if (!bytes.ok() || hex_of(bytes->data(), bytes->size()) != text)
    return malformed(std::string("\"") + name + "\" is not 64 lower-case hex digits");
  return Key{*bytes};
}

Result<std::vector<std::string>> addresses_at(const Json& body) {
  const auto found = body.find("addr");
  if (found == body.end() || !found->is_array()) return malformed("no list \"addr\"");
  if (found->size() > kRecordAddressesMax) return malformed("more than 3 addresses");
  std::vector<std::string> addresses;
  for (const Json& item : *found) {
    if (!item.is_string()) return malformed("an address is no text");
    addresses.push_back(item.get<std::string>());
    SHOAL_TRY(check_address(addresses.back()));
  }
  return addresses;
}

Result<WallTime> expiry_at(const Json& body) {
  SHOAL_ASSIGN(const std::uint64_t seconds, number(body, "exp", kExpiryMax));
  return WallTime(std::chrono::seconds(seconds));
}

template <class Snapshot>
Status read_figure(const Json& body, const Figure<Snapshot>& row, Snapshot& figures) {
  const FigureRecord& form = row.places.record;
  if (form.key == nullptr || (form.room != FigureRecord::Room::kAlways && !body.contains(form.key))) return {};
  if (const auto* text = std::get_if<std::string Snapshot::*>(&row.from)) {
    SHOAL_ASSIGN(figures.**text, text_at(body, form.key, static_cast<std::size_t>(form.max)));
  } else if (const auto* measured = std::get_if<double Snapshot::*>(&row.from)) {
    SHOAL_ASSIGN(figures.**measured, real(body, form.key, form.max));
  } else if (const auto* optional = std::get_if<std::optional<double> Snapshot::*>(&row.from)) {
    SHOAL_ASSIGN(figures.**optional, real(body, form.key, form.max));
  } else {
    SHOAL_ASSIGN(const std::uint64_t count, number(body, form.key, static_cast<std::uint64_t>(form.max)));
    figures.*std::get<std::uint64_t Snapshot::*>(row.from) = count * form.unit;
  }
  return {};
}

// REQUIRES: record.expires.
Status read_disk(const Json& body, PeerRecord& record) {
  const auto found = body.find("disk");
  if (found == body.end()) return {};
  const auto is_count = [](const Json& item) { return item.is_number_unsigned(); };
  if (!found->is_array() || found->size() != 2 || !std::ranges::all_of(*found, is_count) ||
      (*found)[1].get<std::uint64_t>() > kExpiryMax)
    return malformed("\"disk\" is no version and age");
  record.on_disk = {Version((*found)[0].get<std::uint64_t>()),
                    record.expires - kRecordTtl - std::chrono::seconds((*found)[1].get<std::uint64_t>())};
  return {};
}

Result<PeerRecord> read_peer(const Json& body, const RunId& run) {
  PeerRecord record;
  record.run = run;
  SHOAL_ASSIGN(record.peer, key_at<PeerId>(body, "peer"));
  SHOAL_ASSIGN(const std::string incarnation, text_at(body, "inc", 16));
  SHOAL_ASSIGN(const std::uint64_t word, parse_hex_word(incarnation));
  record.session = Session::of(record.peer, word);
  SHOAL_ASSIGN(const std::uint64_t stage, number(body, "stage", limits::kStagesMax - 1));
  record.stage = StageId(static_cast<std::uint16_t>(stage));
  SHOAL_ASSIGN(record.whereabouts.addresses, addresses_at(body));
  SHOAL_ASSIGN(const std::uint64_t version, number(body, "ver", UINT64_MAX));
  record.version = Version(version);
  const auto on = body.find("on");
  if (on == body.end() || !on->is_boolean()) return malformed("no true or false \"on\"");
  record.serving = on->get<bool>();
  for (const PeerFigure& row : peer_figures()) SHOAL_TRY(read_figure(body, row, record.figures));
  SHOAL_ASSIGN(record.sequence, number(body, "seq", UINT64_MAX));
  SHOAL_ASSIGN(record.expires, expiry_at(body));
  SHOAL_TRY(read_disk(body, record));
  return record;
}

Result<RunRecord> read_run(const Json& body, const RunId& run) {
  RunRecord record;
  record.run = run;
  SHOAL_ASSIGN(record.name, text_at(body, "name", kRecordNameBytesMax));
  SHOAL_ASSIGN(const std::uint64_t stages, number(body, "stages", limits::kStagesMax));
  if (stages == 0) return malformed("a run without stages");
  record.stages = static_cast<std::uint16_t>(stages);
  SHOAL_ASSIGN(record.manifest, key_at<Digest>(body, "manifest"));
  SHOAL_ASSIGN(record.whereabouts.addresses, addresses_at(body));
  if (body.contains("end")) {
    SHOAL_ASSIGN(record.ended, text_at(body, "end", kRecordEndBytesMax));
  }
  SHOAL_ASSIGN(record.sequence, number(body, "seq", UINT64_MAX));
  SHOAL_ASSIGN(record.expires, expiry_at(body));
  return record;
}

Result<std::vector<MemberRow>> member_rows_at(const Json& body) {
  SHOAL_ASSIGN(const std::string text, text_at(body, "who", kRecordBytesMax));
  const auto bytes = parse_base64url(text);
  if (!bytes.ok() || bytes->size() % kMemberRowBytes != 0) return malformed("\"who\" is no list of peers");
  std::vector<MemberRow> peers;
  for (std::size_t at = 0; at < bytes->size(); at += kMemberRowBytes) {
    MemberRow peer;
    const std::uint8_t* b = bytes->data() + at;
    for (int i = 0; i < 8; ++i) peer.tag = peer.tag << 8 | b[i];
    peer.stage = StageId(b[8]);
    if (b[9] > static_cast<std::uint8_t>(MemberRow::Place::kGone)) return malformed("\"who\" has an unknown place");
    peer.place = static_cast<MemberRow::Place>(b[9]);
    peer.quiet_s = static_cast<std::uint16_t>(b[10] << 8 | b[11]);
    peers.push_back(peer);
  }
  return peers;
}

// What stands in part 0 alone.
Status read_state(const Json& body, StandingRecord& record) {
  SHOAL_ASSIGN(const std::string state, text_at(body, "state", 16));
  const auto found = std::find(std::begin(kStateNames), std::end(kStateNames), state);
  if (found == std::end(kStateNames)) return malformed("\"state\" is none that is known");
  record.state = static_cast<RunState>(found - std::begin(kStateNames));
  if (body.contains("since")) {
    SHOAL_ASSIGN(const std::uint64_t seconds, number(body, "since", kExpiryMax));
    record.since = WallTime(std::chrono::seconds(seconds));
  }
  if (body.contains("at")) {
    SHOAL_ASSIGN(const std::uint64_t stage, number(body, "at", limits::kStagesMax - 1));
    record.stage = StageId(static_cast<std::uint16_t>(stage));
  }
  record.stranded = body.contains("cut");
  if (const auto last = body.find("last"); last != body.end()) {
    if (!last->is_array() || last->size() > kRecordLastMax) return malformed("\"last\" is no short list");
    for (const Json& name : *last) {
      if (!name.is_string() || name.get<std::string>().size() != 8) return malformed("\"last\" names no session");
      record.last.push_back(name.get<std::string>());
    }
  }
  for (const LaunchFigure& row : launch_figures()) SHOAL_TRY(read_figure(body, row, record.figures));
  if (body.contains("unnamed")) {
    SHOAL_ASSIGN(const std::uint64_t count, number(body, "unnamed", UINT32_MAX));
    record.unnamed = static_cast<std::uint32_t>(count);
  }
  return {};
}

Result<StandingRecord> read_standing(const Json& body, const RunId& run) {
  StandingRecord record;
  record.run = run;
  SHOAL_ASSIGN(const std::uint64_t parts, number(body, "parts", kStandingPartsMax));
  SHOAL_ASSIGN(const std::uint64_t part, number(body, "part", kStandingPartsMax));
  if (part >= parts) return malformed("a part beyond the last one");
  record.part = static_cast<std::uint16_t>(part);
  record.parts = static_cast<std::uint16_t>(parts);
  SHOAL_ASSIGN(record.peers, member_rows_at(body));
  if (part == 0) SHOAL_TRY(read_state(body, record));
  SHOAL_ASSIGN(record.sequence, number(body, "seq", UINT64_MAX));
  SHOAL_ASSIGN(record.expires, expiry_at(body));
  return record;
}

// `wanted`: null for any run.
Result<AnyRecord> parse(std::string_view text, const RunId* wanted) {
  SHOAL_ASSIGN(const Json body, parse_body(text));
  SHOAL_ASSIGN(const std::uint64_t form, number(body, "v", UINT64_MAX));
  if (form != 1) return malformed("form " + std::to_string(form) + ", this build reads 1");
  SHOAL_ASSIGN(const RunId run, key_at<RunId>(body, "run"));
  if (wanted != nullptr && run != *wanted)
    return make_error(ErrorCode::kForeign, "record: of run " + short_name(run) + ", not " + short_name(*wanted));
  AnyRecord record;
  if (body.contains("peer")) {
    SHOAL_ASSIGN(record, read_peer(body, run));
  } else if (body.contains("part")) {
    SHOAL_ASSIGN(record, read_standing(body, run));
  } else {
    SHOAL_ASSIGN(record, read_run(body, run));
  }
  SHOAL_TRY(check_signature(text, signer_of(record)));
  return record;
}

bool is_ip_usable(const std::string& text, bool v6) {
  if (v6) {
    in6_addr address{};
    return inet_pton(AF_INET6, text.c_str(), &address) == 1 && address.s6_addr[0] != 0xff &&
           !IN6_IS_ADDR_UNSPECIFIED(&address);
  }
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return false;
  const std::uint32_t word = ntohl(address.s_addr);
  return word != 0 && word < 0xe0000000u;
}

}  // namespace

Status check_address(std::string_view address) {
  const Error error = malformed("\"" + std::string(address.substr(0, kRecordAddressBytesMax)) +
                                "\" is no host:port that can be dialled");
  const auto parsed = parse_dial_address(address);
  if (address.size() > kRecordAddressBytesMax || !parsed.ok() || parsed->text() != address) return error;
  const HostPort& control = parsed->control;
  if (control.host.find('_') != std::string::npos) return error;
  const bool literal = control.is_v6() || control.host.find_first_not_of("0123456789.") == std::string::npos;
  return !literal || is_ip_usable(control.host, control.is_v6()) ? Status::success() : error;
}

std::string stage_key(const RunId& run, StageId stage) {
  return "shoal/1/" + hex_of(run) + "/stage/" + std::to_string(stage.value);
}
std::string run_key_name(const RunId& run) { return "shoal/1/" + hex_of(run) + "/run"; }
std::string standing_key(const RunId& run, std::uint16_t part) {
  return "shoal/1/" + hex_of(run) + "/standing/" + std::to_string(part);
}
std::string_view name_of(RunState state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::string key_of(const AnyRecord& record) {
  if (const auto* peer = std::get_if<PeerRecord>(&record)) return stage_key(peer->run, peer->stage);
  if (const auto* standing = std::get_if<StandingRecord>(&record)) return standing_key(standing->run, standing->part);
  return run_key_name(std::get<RunRecord>(record).run);
}
PeerId signer_of(const AnyRecord& record) {
  if (const auto* peer = std::get_if<PeerRecord>(&record)) return peer->peer;
  return as_peer(std::visit([](const auto& r) { return r.run; }, record));
}
std::uint64_t sequence_of(const AnyRecord& record) {
  return std::visit([](const auto& r) { return r.sequence; }, record);
}
WallTime expires_of(const AnyRecord& record) {
  return std::visit([](const auto& r) { return r.expires; }, record);
}

Result<AnyRecord> parse_any_record(std::string_view text) { return parse(text, nullptr); }

Result<PeerRecord> parse_peer_record(const std::string& text, const RunId& run) {
  auto record = parse(text, &run);
  if (!record.ok()) return record.error();
  if (auto* peer = std::get_if<PeerRecord>(&*record)) return std::move(*peer);
  return malformed("of a run where one of a peer is wanted");
}

Result<RunRecord> parse_run_record(const std::string& text, const RunId& run) {
  auto record = parse(text, &run);
  if (!record.ok()) return record.error();
  if (auto* found = std::get_if<RunRecord>(&*record)) return std::move(*found);
  return malformed("of a peer where one of a run is wanted");
}

}  // namespace shoal
