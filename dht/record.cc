#include "dht/record.h"

#include <arpa/inet.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "common/hex.h"
#include "common/text_codes.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSignatureChars = 86;  // 64 bytes in base64url
constexpr std::string_view kSignatureKey = ",\"sig\":\"";
constexpr std::string_view kEnd = "\"}";
constexpr std::size_t kTailBytes = kSignatureKey.size() + kSignatureChars + kEnd.size();
constexpr double kRateMax = 1e15;
constexpr double kQueueSecondsMax = 1e6;
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

std::uint64_t unix_seconds(WallTime time) {
  const auto count = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return count < 0 ? 0 : static_cast<std::uint64_t>(count);
}

// ---- packing ----

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

// Adds as many of `addresses` as fit, in their order: they stand best first.
Result<std::string> pack_with_addresses(Json body, const std::vector<std::string>& addresses, const KeyPair& key) {
  for (const std::string& address : addresses) {
    if (Status status = check_address(address); !status.ok())
      return make_error(ErrorCode::kInput, status.error().message);
  }
  std::size_t count = std::min(addresses.size(), kRecordAddressesMax);
  for (;; --count) {
    body["addr"] = std::vector<std::string>(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(count));
    SHOAL_ASSIGN(std::string text, sign_text(body, key));
    if (text.size() <= kRecordBytesMax) return text;
    if (count <= 1)
      return make_error(ErrorCode::kTooLarge, "record: " + std::to_string(text.size()) + " bytes, limit 512");
  }
}

// ---- parsing ----

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

Result<PeerRecord> read_peer(const Json& body, const RunId& run) {
  PeerRecord record;
  record.run = run;
  SHOAL_ASSIGN(record.peer, key_at<PeerId>(body, "peer"));
  SHOAL_ASSIGN(const std::string incarnation, text_at(body, "inc", 16));
  SHOAL_ASSIGN(const std::uint64_t word, parse_hex_word(incarnation));
  record.session = Session::of(record.peer, word);
  SHOAL_ASSIGN(const std::uint64_t stage, number(body, "stage", limits::kStagesMax - 1));
  record.stage = StageId(static_cast<std::uint16_t>(stage));
  SHOAL_ASSIGN(record.addresses, addresses_at(body));
  SHOAL_ASSIGN(record.rate, real(body, "rate", kRateMax));
  SHOAL_ASSIGN(record.queue_seconds, real(body, "queue", kQueueSecondsMax));
  SHOAL_ASSIGN(const std::uint64_t version, number(body, "ver", UINT64_MAX));
  record.version = Version(version);
  const auto on = body.find("on");
  if (on == body.end() || !on->is_boolean()) return malformed("no true or false \"on\"");
  record.serving = on->get<bool>();
  SHOAL_ASSIGN(record.sequence, number(body, "seq", UINT64_MAX));
  SHOAL_ASSIGN(record.expires, expiry_at(body));
  return record;
}

// How the run stands. All of it may be absent.
Status read_standing(const Json& body, RunRecord& record) {
  if (body.contains("on")) {
    SHOAL_ASSIGN(const std::string digits, text_at(body, "on", kRecordServingMax));
    if (digits.size() != record.stages) return malformed("\"on\" is not a digit a stage");
    for (char c : digits) {
      if (c < '0' || c > '9') return malformed("\"on\" is not a digit a stage");
      record.serving.push_back(static_cast<std::uint8_t>(c - '0'));
    }
  }
  if (body.contains("since")) {
    SHOAL_ASSIGN(const std::uint64_t seconds, number(body, "since", kExpiryMax));
    record.parked_since = WallTime(std::chrono::seconds(seconds));
  }
  if (body.contains("cut")) {
    SHOAL_ASSIGN(const std::uint64_t stage, number(body, "cut", record.stages));
    record.stranded = StageId(static_cast<std::uint16_t>(stage));
  }
  if (body.contains("end")) {
    SHOAL_ASSIGN(record.ended, text_at(body, "end", kRecordEndBytesMax));
  }
  return {};
}

Result<RunRecord> read_run(const Json& body, const RunId& run) {
  RunRecord record;
  record.run = run;
  SHOAL_ASSIGN(record.name, text_at(body, "name", kRecordNameBytesMax));
  SHOAL_ASSIGN(const std::uint64_t stages, number(body, "stages", limits::kStagesMax));
  if (stages == 0) return malformed("a run without stages");
  record.stages = static_cast<std::uint16_t>(stages);
  SHOAL_ASSIGN(record.manifest, key_at<Digest>(body, "manifest"));
  SHOAL_ASSIGN(record.addresses, addresses_at(body));
  SHOAL_TRY(read_standing(body, record));
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
  } else {
    SHOAL_ASSIGN(record, read_run(body, run));
  }
  SHOAL_TRY(check_signature(text, signer_of(record)));
  return record;
}

bool is_ip_usable(std::string_view host, bool v6) {
  const std::string text(host);
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
  const auto colon = address.rfind(':');
  if (address.size() > kRecordAddressBytesMax || colon == std::string_view::npos || colon == 0) return error;
  const std::string_view port = address.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.front() == '0' ||
      port.find_first_not_of("0123456789") != std::string_view::npos)
    return error;
  if (std::stoul(std::string(port)) > 65535) return error;
  std::string_view host = address.substr(0, colon);
  if (host.front() == '[') {
    if (host.size() < 4 || host.back() != ']' || !is_ip_usable(host.substr(1, host.size() - 2), true)) return error;
    return {};
  }
  for (char c : host)
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-' && c != '.')
      return error;
  const bool literal = host.find_first_not_of("0123456789.") == std::string_view::npos;
  if (literal && !is_ip_usable(host, false)) return error;
  return {};
}

std::string stage_key(const RunId& run, StageId stage) {
  return "shoal/1/" + hex_of(run) + "/stage/" + std::to_string(stage.value);
}
std::string run_key_name(const RunId& run) { return "shoal/1/" + hex_of(run) + "/run"; }

std::string key_of(const AnyRecord& record) {
  if (const auto* peer = std::get_if<PeerRecord>(&record)) return stage_key(peer->run, peer->stage);
  return run_key_name(std::get<RunRecord>(record).run);
}
PeerId signer_of(const AnyRecord& record) {
  if (const auto* peer = std::get_if<PeerRecord>(&record)) return peer->peer;
  return as_peer(std::get<RunRecord>(record).run);
}
std::uint64_t sequence_of(const AnyRecord& record) {
  return std::visit([](const auto& r) { return r.sequence; }, record);
}
WallTime expires_of(const AnyRecord& record) {
  return std::visit([](const auto& r) { return r.expires; }, record);
}

Result<std::string> pack_record(const PeerRecord& record, const KeyPair& key) {
  if (record.peer != key.id())
    return make_error(ErrorCode::kInput, "record: the key is not that of peer " + short_name(record.peer));
  if (!(record.rate >= 0 && record.rate <= kRateMax) ||
      !(record.queue_seconds >= 0 && record.queue_seconds <= kQueueSecondsMax))
    return make_error(ErrorCode::kInput, "record: rate or queue is out of range");
  Json body;
  body["v"] = 1;
  body["run"] = hex_of(record.run);
  body["peer"] = hex_of(record.peer);
  body["inc"] = hex_of_word(record.session.incarnation);
  body["stage"] = record.stage.value;
  body["addr"] = Json::array();
  body["rate"] = std::round(record.rate * 10) / 10;
  body["queue"] = std::round(record.queue_seconds * 1000) / 1000;
  body["ver"] = record.version.value;
  body["on"] = record.serving;
  body["seq"] = record.sequence;
  body["exp"] = unix_seconds(record.expires);
  return pack_with_addresses(std::move(body), record.addresses, key);
}

Result<std::string> pack_record(const RunRecord& record, const KeyPair& run_key) {
  if (as_peer(record.run) != run_key.id())
    return make_error(ErrorCode::kInput, "record: the key is not that of run " + short_name(record.run));
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
  // How it stands goes in where there is room: who is to be dialled comes first.
  Json with_standing = body;
  if (!record.ended && !record.serving.empty() && record.serving.size() <= kRecordServingMax) {
    std::string digits;
    for (const std::uint8_t count : record.serving) digits += static_cast<char>('0' + std::min<int>(count, 9));
    with_standing["on"] = digits;
    if (record.parked_since) with_standing["since"] = unix_seconds(*record.parked_since);
    if (record.stranded) with_standing["cut"] = record.stranded->value;
  }
  auto text = pack_with_addresses(std::move(with_standing), record.addresses, run_key);
  if (text.ok() || text.code() != ErrorCode::kTooLarge) return text;
  return pack_with_addresses(std::move(body), record.addresses, run_key);
}

Result<AnyRecord> parse_any_record(std::string_view text) { return parse(text, nullptr); }

Result<PeerRecord> parse_peer_record(const std::string& text, const RunId& run) {
  SHOAL_ASSIGN(AnyRecord record, parse(text, &run));
  if (auto* peer = std::get_if<PeerRecord>(&record)) return std::move(*peer);
  return malformed("of a run where one of a peer is wanted");
}

Result<RunRecord> parse_run_record(const std::string& text, const RunId& run) {
  SHOAL_ASSIGN(AnyRecord record, parse(text, &run));
  if (auto* found = std::get_if<RunRecord>(&record)) return std::move(*found);
  return malformed("of a peer where one of a run is wanted");
}

}  // namespace shoal
