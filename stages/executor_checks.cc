// What every executor refuses at its boundary before it computes.
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

template <class T>
Status check_token_range(const ForwardInput& input, std::uint32_t vocabulary) {
  const std::span<const T> tokens{reinterpret_cast<const T*>(input.tokens.bytes.data()),
                                  input.tokens.bytes.size() / sizeof(T)};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= vocabulary) {
      return malformed(input.microbatch, "token " + std::to_string(+tokens[i]) + " at element " + std::to_string(i) +
                                             " is outside the vocabulary of " + std::to_string(vocabulary));
    }
  }
  return Status::success();
}

}  // namespace

Status check_tokens(const StageSpec& spec, const ForwardInput& input) {
  const HostTensor& tokens = input.tokens;
  const Shape& shape = tokens.shape;
  if (tokens.dtype != DType::kU8 && tokens.dtype != DType::kU16)
    return malformed(input.microbatch, "tokens are neither u8 nor u16");
  if (shape.size() != 2 || shape[0] < 1 || shape[1] != static_cast<std::int64_t>(spec.model.positions) + 1 ||
      !well_sized(tokens)) {
    return malformed(input.microbatch, "tokens have shape " + text_of(shape) + ", expected (B, " +
                                           std::to_string(spec.model.positions + 1) + ")");
  }
  return tokens.dtype == DType::kU8 ? check_token_range<std::uint8_t>(input, spec.model.vocabulary)
                                    : check_token_range<std::uint16_t>(input, spec.model.vocabulary);
}

std::int64_t sequences_of(const StageInput& input) { return input.tokens.shape[0]; }

std::uint32_t token_at(const HostTensor& tokens, std::size_t i) {
  if (tokens.dtype == DType::kU8) return tokens.bytes.data()[i];
  return reinterpret_cast<const std::uint16_t*>(tokens.bytes.data())[i];
}

Status check_finite(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role) {
  if (all_finite(values)) return Status::success();
  const std::optional<std::size_t> first = first_non_finite(values);
  std::ostringstream out;
  out << "microbatch " << microbatch << ": " << role << " holds " << values[first.value_or(0)] << " at element "
      << first.value_or(0) << " of " << values.size();
  return make_error(ErrorCode::kNonFinite, out.str());
}

}  // namespace shoal
