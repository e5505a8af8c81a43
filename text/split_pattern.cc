#include "text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "text/pattern_dialect.h"
#include "text/utf8.h"

namespace shoal {
namespace {

constexpr std::size_t kJitStackBytes = 32 << 10;
constexpr std::size_t kJitStackBytesMax = 16 << 20;
constexpr std::uint32_t kStepsMax = 10'000'000;
constexpr std::uint32_t kHeapKib = 256 << 10;

struct FreesData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreesContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreesStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
struct FreesCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

std::string words_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? "" : text.data());
}

}  // namespace

struct MatchRoom::Parts {
  std::unique_ptr<pcre2_match_data, FreesData> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, FreesContext> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, FreesStack> stack{
      pcre2_jit_stack_create(kJitStackBytes, kJitStackBytesMax, nullptr)};
  const char* watched_end = nullptr;
  bool reached_end = false;
};

MatchRoom::MatchRoom() : parts_(std::make_unique<Parts>()) {
  SHOAL_CHECK(parts_->data != nullptr && parts_->context != nullptr);
  pcre2_set_match_limit(parts_->context.get(), kStepsMax);
  pcre2_set_heap_limit(parts_->context.get(), kHeapKib);
  if (parts_->stack != nullptr) pcre2_jit_stack_assign(parts_->context.get(), nullptr, parts_->stack.get());
}
MatchRoom::~MatchRoom() = default;
MatchRoom::MatchRoom(MatchRoom&&) noexcept = default;
MatchRoom& MatchRoom::operator=(MatchRoom&&) noexcept = default;

void MatchRoom::watch_end(const char* end) {
  parts_->watched_end = end;
  parts_->reached_end = false;
}
bool MatchRoom::reached_end() const { return parts_->reached_end; }

struct SplitPattern::Code {
  std::unique_ptr<pcre2_code, FreesCode> code;
  bool machine_code = false;
};

SplitPattern::SplitPattern(std::unique_ptr<const Code> code) : code_(std::move(code)) {}
SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;

Result<SplitPattern> SplitPattern::of_pattern(std::string_view pattern) {
  SHOAL_ASSIGN(const std::string ours, pcre2_pattern(pattern));
  return compile(ours);
}

Result<SplitPattern> SplitPattern::of_literal(std::string_view text) { return compile(pattern_of_literal(text)); }

Result<SplitPattern> SplitPattern::compile(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE place = 0;
  auto code = std::make_unique<Code>();
  code->code.reset(pcre2_compile(units_of(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error, &place, nullptr));
  if (code->code == nullptr) {
    return make_error(ErrorCode::kUnsupported,
                      words_of(error) + " at byte " + std::to_string(place) + " of the pattern " + pattern);
  }
  // Without it the same code is interpreted.
  code->machine_code = pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
  return SplitPattern(std::move(code));
}

std::optional<TextRange> SplitPattern::find(std::string_view text, std::size_t from, MatchRoom& room) const {
  std::optional<TextRange> found = search(text, from, room);
  if (!found || found->end > found->begin || found->begin > from) return found;
  if (from == text.size()) return std::nullopt;
  return search(text, from + character_bytes(text[from]), room);
}

std::optional<TextRange> SplitPattern::search(std::string_view text, std::size_t from, MatchRoom& room) const {
  pcre2_match_data* data = room.parts_->data.get();
  pcre2_match_context* context = room.parts_->context.get();
  const bool watched = !text.empty() && text.data() + text.size() == room.parts_->watched_end;
  const std::uint32_t options = watched ? PCRE2_PARTIAL_HARD : 0;
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (code_->machine_code) {
    // Unchecked: otherwise each call would read the whole text to see that it is UTF-8.
    found = pcre2_jit_match(code_->code.get(), units_of(text), text.size(), from, options, data, context);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found = pcre2_match(code_->code.get(), units_of(text), text.size(), from,
                        options | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, context);
  }
  if (found == PCRE2_ERROR_PARTIAL) room.parts_->reached_end = true;
  if (found < 0) return std::nullopt;
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
  if (range[1] < range[0]) return std::nullopt;
  return TextRange{range[0], range[1]};
}

}  // namespace shoal
