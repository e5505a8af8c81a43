#include "layout/peer_list.h"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr std::size_t kPeerListBytesMax = 1u << 20;
constexpr double kNumberMax = 1e18;

Error wrong(const std::string& origin, const toml::node& node, const std::string& what) {
  return make_error(ErrorCode::kInput, at_line(origin, node.source().begin.line) + what);
}

Result<double> positive(const std::string& origin, const std::string& key, const toml::node& node) {
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value || !(*value > 0) || *value > kNumberMax) return wrong(origin, node, key + " must be a number above 0");
  return *value;
}

Result<std::uint16_t> small(const std::string& origin, const std::string& key, const toml::node& node) {
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!value || *value < 0 || *value > UINT16_MAX) return wrong(origin, node, key + " must be a whole number from 0");
  return static_cast<std::uint16_t>(*value);
}

Result<std::string> words(const std::string& origin, const std::string& key, const toml::node& node) {
  const auto value = node.value<std::string>();
  if (!value || value->empty() || !node.is_string()) return wrong(origin, node, key + " must be a text");
  return *value;
}

constexpr char kKeysOfPeer[] = "name key region tokens_per_s flops stage_ms memory_mib up_mbps down_mbps stage";

Status take(const std::string& origin, const std::string& key, const toml::node& node, NamedPeer& peer) {
  if (key == "name" || key == "region") {
    SHOAL_ASSIGN((key == "name" ? peer.name : peer.region), words(origin, key, node));
    return {};
  }
  if (key == "key") {
    SHOAL_ASSIGN(const std::string text, words(origin, key, node));
    const auto bytes = parse_hex32(text);
    if (!bytes.ok())
      return wrong(origin, node, "key: " + bytes.error().message + " (`shoal key` prints a machine's key)");
    peer.key = PeerId{*bytes};
    return {};
  }
  if (key == "stage") {
    SHOAL_ASSIGN(peer.stage, small(origin, key, node));
    return {};
  }
  if (key == "memory_mib") {
    SHOAL_ASSIGN(const double mebibytes, positive(origin, key, node));
    peer.memory_mib = static_cast<std::uint64_t>(std::min(mebibytes, 0x1p40));
    return {};
  }
  const std::pair<const char*, std::optional<double>*> numbers[] = {{"tokens_per_s", &peer.tokens_per_s},
                                                                    {"flops", &peer.flops},
                                                                    {"stage_ms", &peer.stage_ms},
                                                                    {"up_mbps", &peer.up_mbps},
                                                                    {"down_mbps", &peer.down_mbps}};
  for (const auto& [name, out] : numbers) {
    if (key != name) continue;
    SHOAL_ASSIGN(*out, positive(origin, key, node));
    return {};
  }
  return wrong(origin, node, "unknown key \"" + key + "\" of a peer; known are: " + kKeysOfPeer);
}

Result<NamedPeer> peer_of(const std::string& origin, const toml::node& node) {
  const toml::table* entries = node.as_table();
  if (entries == nullptr) return wrong(origin, node, "a peer is a [[peer]] with keys");
  NamedPeer peer{.line = node.source().begin.line};
  for (const auto& [key, value] : *entries) SHOAL_TRY(take(origin, std::string(key.str()), value, peer));
  if (peer.name.empty() && !peer.key) return wrong(origin, node, "a peer needs a name or a key");
  if (peer.tokens_per_s.has_value() + peer.flops.has_value() + peer.stage_ms.has_value() > 1)
    return wrong(origin, node, "a peer's speed stands once: tokens_per_s, flops or stage_ms");
  if (peer.name.empty()) peer.name = short_name(*peer.key);
  return peer;
}

Status check_once(const PeerList& list) {
  std::map<std::string, std::size_t> names;
  std::map<PeerId, std::size_t> keys;
  for (const NamedPeer& peer : list.peers) {
    const auto [name, new_name] = names.try_emplace(peer.name, peer.line);
    if (!new_name)
      return make_error(ErrorCode::kInput, at_line(list.origin, peer.line) + "peer \"" + peer.name +
                                               "\" stands in line " + std::to_string(name->second) +
                                               " already. HINT: give each peer a name of its own");
    if (!peer.key) continue;
    const auto [key, new_key] = keys.try_emplace(*peer.key, peer.line);
    if (!new_key)
      return make_error(ErrorCode::kInput, at_line(list.origin, peer.line) + "the key of peer \"" + peer.name +
                                               "\" stands in line " + std::to_string(key->second) +
                                               " already: a peer serves one stage. HINT: remove one of the two");
  }
  return {};
}

}  // namespace

std::string at_line(const std::string& origin, std::size_t line) { return origin + ":" + std::to_string(line) + ": "; }

Result<PeerList> parse_peer_list(std::string_view text, const std::string& origin) {
  toml::table file;
  try {
    file = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return make_error(ErrorCode::kInput, at_line(origin, error.source().begin.line) + std::string(error.description()));
  }
  PeerList list{.origin = origin};
  for (const auto& [key, node] : file) {
    if (key.str() == "stages") {
      SHOAL_ASSIGN(list.stages, small(origin, "stages", node));
    } else if (key.str() == "trainer") {
      SHOAL_ASSIGN(list.trainer, words(origin, "trainer", node));
      list.trainer_line = node.source().begin.line;
    } else if (key.str() != "peer") {
      return wrong(origin, node, "unknown key \"" + std::string(key.str()) + "\"; known are: stages trainer [[peer]]");
    } else if (const toml::array* peers = node.as_array()) {
      for (const toml::node& one : *peers) {
        SHOAL_ASSIGN(NamedPeer peer, peer_of(origin, one));
        list.peers.push_back(std::move(peer));
      }
    } else {
      return wrong(origin, node, "a peer is a [[peer]] with keys");
    }
  }
  if (list.peers.empty()) return make_error(ErrorCode::kInput, origin + ": there is no [[peer]]");
  SHOAL_TRY(check_once(list));
  return list;
}

Result<PeerList> load_peer_list(const std::string& path) {
  SHOAL_ASSIGN(const Bytes bytes, read_file(path, kPeerListBytesMax));
  return parse_peer_list({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

std::string text_of(const PeerList& list) {
  std::ostringstream out;
  if (list.stages) out << "stages = " << *list.stages << "\n";
  for (const NamedPeer& peer : list.peers) {
    out << "\n[[peer]]\nname = " << toml::value<std::string>(peer.name) << "\n";
    if (peer.key) out << "key = \"" << hex_of(*peer.key) << "\"\n";
    if (peer.stage) out << "stage = " << *peer.stage << "\n";
  }
  return out.str();
}

Result<std::map<PeerId, StageId>> wishes_of(const PeerList& list, std::uint16_t stages) {
  if (list.stages && *list.stages != stages)
    return make_error(ErrorCode::kInput, list.origin + " was planned for " + std::to_string(*list.stages) +
                                             " stages, and the run has " + std::to_string(stages) +
                                             ". HINT: plan anew: shoal plan RUN.toml --peers FILE -o LAYOUT.toml");
  std::map<PeerId, StageId> wishes;
  for (const NamedPeer& peer : list.peers) {
    const std::string who = at_line(list.origin, peer.line) + "peer \"" + peer.name + "\" ";
    if (!peer.key)
      return make_error(ErrorCode::kInput, who +
                                               "has no key, by which alone a run knows it. HINT: key = \"...\", "
                                               "as `shoal key` prints it on that machine");
    if (!peer.stage)
      return make_error(ErrorCode::kInput, who +
                                               "has no stage. HINT: stage = K, or plan: shoal plan RUN.toml --peers "
                                               "FILE -o LAYOUT.toml");
    if (*peer.stage >= stages)
      return make_error(ErrorCode::kInput, who + "is wished for stage " + std::to_string(*peer.stage) +
                                               "; the run has " + std::to_string(stages) +
                                               " stages, numbered from 0. HINT: plan anew, or change the number");
    wishes.emplace(*peer.key, StageId(*peer.stage));
  }
  return wishes;
}

}  // namespace shoal
