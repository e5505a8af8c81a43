#pragma once
// What lines carry for a token: over the edges between stages, and in rounds. Codecs at "auto" count as int8. A peer's
// line has so many bytes a second each way. Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace shoal {

// What a stage has, in bytes of a token.
struct LineBytes {
  double forward = 0, backward = 0;  // over the edge behind it: the activation and the token itself; the gradient
  double up = 0, down = 0;           // what its peer sends and gets, over both of its edges
};
// By stage, for the values that cross (ModelSpec::wire_width()); asks for no split.
std::vector<LineBytes> line_bytes(const RunConfig& config);

// What a member brings to a round, in bytes as it travels; by stage. REQUIRES: the split was checked.
std::vector<double> round_payloads(const RunConfig& config);
// What a member sends, and gets, in rounds for a token of its own: 2 (n - 1) / n of the payload a round among the n
// expected replicas, a half as their parts and a half as sums; by stage. REQUIRES: likewise.
std::vector<double> round_bytes(const RunConfig& config);

// Tokens a second at the stage whose peers need most of their lines; `rounds` as round_bytes() says, or none.
double carried_tokens(const RunConfig& config, double line, const std::vector<double>& rounds);
// The most values of a token that may cross so that lines carry these tokens a second beside the run's rounds: up to
// dim. 0: even one is too many.
std::uint32_t widest_boundary(const RunConfig& config, double line, double tokens);

// Where rounds are the larger part of what a member sends, behind a narrow boundary, and what makes them smaller.
// REQUIRES: a checked configuration.
std::optional<std::string> round_warning(const RunConfig& config);

}  // namespace shoal
