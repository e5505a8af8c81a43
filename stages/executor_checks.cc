// What every executor refuses at its boundary before it computes.
#include <optional>
#include <sstream>

#include "kernels/accumulate.h"
#include "stages/windowed_executor.h"

namespace shoal {
namespace {

Status malformed(const MicrobatchId& microbatch, const std::string& text) {
  std::ostringstream out;
  out << "microbatch " << microbatch << ": " << text;
  return make_error(ErrorCode::kMalformed, out.str());
}

bool well_sized(const HostTensor& tensor) {
  return tensor.bytes.size() == static_cast<std::size_t>(element_count(tensor.shape)) * size_of(tensor.dtype);
}

// What is wrong with the first id that is not below V; none: nothing is.
std::optional<std::string> id_beyond(const HostTensor& tokens, std::uint32_t vocabulary) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(element_count(tokens.shape)); ++i) {
    const std::uint32_t id = id_at(tokens.bytes, tokens.dtype, i);
    if (id >= vocabulary)
      return "token " + std::to_string(id) + " at element " + std::to_string(i) + " is outside the vocabulary of " +
             std::to_string(vocabulary);
  }
  return std::nullopt;
}

}  // namespace

Status check_tokens(const StageSpec& spec, const ForwardInput& input) {
  const HostTensor& tokens = input.tokens;
  const Shape& shape = tokens.shape;
  if (!holds_ids(tokens.dtype)) return malformed(input.microbatch, "tokens are neither u8, u16 nor u32");
  if (shape.size() != 2 || shape[0] < 1 || shape[1] != static_cast<std::int64_t>(spec.model.positions) + 1 ||
      !well_sized(tokens)) {
    return malformed(input.microbatch, "tokens have shape " + text_of(shape) + ", expected (B, " +
                                           std::to_string(spec.model.positions + 1) + ")");
  }
  const auto stranger = id_beyond(tokens, spec.model.vocabulary);
  return stranger ? malformed(input.microbatch, *stranger) : Status::success();
}

Status check_text(const StageSpec& spec, const HostTensor& tokens, std::uint64_t places) {
  const auto refuse = [](const std::string& text) { return make_error(ErrorCode::kMalformed, "a text: " + text); };
  const Shape& shape = tokens.shape;
  if (!holds_ids(tokens.dtype)) return refuse("tokens are neither u8, u16 nor u32");
  if (shape.size() != 2 || shape[0] != 1 || shape[1] < 1 || !well_sized(tokens))
    return refuse("tokens have shape " + text_of(shape) + ", expected (1, N)");
  if (places + static_cast<std::uint64_t>(shape[1]) > spec.model.context_length())
    return refuse(std::to_string(places) + " places and " + std::to_string(shape[1]) +
                  " more are beyond the model's context of " + std::to_string(spec.model.context_length()));
  if (const auto stranger = id_beyond(tokens, spec.model.vocabulary)) return refuse(*stranger);
  return Status::success();
}

std::int64_t sequences_of(const StageInput& input) { return input.tokens.shape[0]; }

Status check_finite(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role) {
  if (all_finite(values)) return Status::success();
  const std::optional<std::size_t> first = first_non_finite(values);
  std::ostringstream out;
  out << "microbatch " << microbatch << ": " << role << " holds " << values[first.value_or(0)] << " at element "
      << first.value_or(0) << " of " << values.size();
  return make_error(ErrorCode::kNonFinite, out.str());
}

}  // namespace shoal
