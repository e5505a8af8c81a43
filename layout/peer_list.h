#pragma once
// Peers of a run in a TOML file (docs/FILES.md, "Lists of peers"): what `shoal plan --peers` plans with, and which
// stage each is wished for, as it writes and `shoal launch --layout` reads. Pure but for load_peer_list().
// Thread: any.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/result.h"

namespace shoal {

// What is not said stays empty.
struct NamedPeer {
  std::size_t line = 0;
  std::string name{};  // or else the beginning of its key
  std::optional<PeerId> key{};
  std::string region{};
  std::optional<double> tokens_per_s{};  // of the whole model in one process
  std::optional<double> flops{};         // that it makes of a training, a second
  std::optional<double> stage_ms{};      // of a microbatch there and back at one of equal stages
  std::optional<std::uint64_t> memory_mib{};
  std::optional<double> up_mbps{}, down_mbps{};
  std::optional<std::uint16_t> stage{};
};

struct PeerList {
  std::string origin{};                   // the file, for messages
  std::optional<std::uint16_t> stages{};  // of the run that it was planned for
  std::string trainer{};                  // region of the launching process
  std::size_t trainer_line = 0;           // where that stands
  std::vector<NamedPeer> peers{};
};

// ERRORS: kInput (syntax, an unknown key, a wrong type, out of bounds, nobody, neither name nor key, one of either
// twice), with origin and line.
Result<PeerList> parse_peer_list(std::string_view text, const std::string& origin);

// ERRORS: read_file's, parse_peer_list's.
Result<PeerList> load_peer_list(const std::string& path);

// `[[peer]]` with name, key and stage of each, and `stages`.
std::string text_of(const PeerList& list);

// Where each peer is wished. ERRORS: kInput, with origin and line: a peer without a key or without a stage, a stage
// that the run does not have, a list of another number of stages.
Result<std::map<PeerId, StageId>> wishes_of(const PeerList& list, std::uint16_t stages);

// What a message of `line` begins with.
std::string at_line(const std::string& origin, std::size_t line);

}  // namespace shoal
