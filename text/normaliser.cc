#include "text/normaliser.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace shoal {
namespace {

utf8proc_option_t options_of(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    case NormalForm::kNfd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    case NormalForm::kNfkc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case NormalForm::kNfkd:
      break;
  }
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
}

// ASCII is every form of itself; all below U+0300, whose lead bytes are below 0xCC, is NFC.
bool is_normal(std::string_view text, NormalForm form) {
  const unsigned char bound = form == NormalForm::kNfc ? 0xCC : 0x80;
  return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) < bound; });
}

struct Frees {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
};

std::string normal_part(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* memory = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &memory, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, Frees> owner(memory);
  SHOAL_CHECK(size >= 0);  // the text is UTF-8
  return {reinterpret_cast<const char*>(memory), static_cast<std::size_t>(size)};
}

// U+11A7 stands before the first trailing Hangul letter and is none, but utf8proc before 2.9 composes with it. It joins
// nothing before it, so the text may be cut there.
std::string normal_form(std::string_view text, NormalForm form) {
  constexpr std::string_view kNoLetter = "\xE1\x86\xA7";
  std::string out;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(kNoLetter, 1));
    out += normal_part(part, form);
    text.remove_prefix(part.size());
  }
  return out;
}

struct Applies {
  std::string_view text;
  // Nothing when the step leaves the text as it is.
  bool operator()(NormalForm form) {
    if (is_normal(text, form)) return false;
    out = normal_form(text, form);
    return true;
  }
  bool operator()(const PrependText& step) {
    if (text.empty()) return false;
    out = step.text;
    out.append(text);
    return true;
  }
  bool operator()(const ReplaceText& step) {
    if (text.find(step.from) == std::string_view::npos) return false;
    out = replaced(text, step.from, step.to);
    return true;
  }
  std::string out;
};

// By how much a step may multiply a text.
std::size_t growth_of(const NormalStep& step) {
  if (const auto* replace = std::get_if<ReplaceText>(&step)) return replace->growth();
  if (const auto* prepend = std::get_if<PrependText>(&step)) return std::max<std::size_t>(1, prepend->text.size());
  const NormalForm form = std::get<NormalForm>(step);  // Unicode's FAQ on normalization has the factors in UTF-8
  return form == NormalForm::kNfc || form == NormalForm::kNfd ? 3 : 11;
}

}  // namespace

Result<Normaliser> Normaliser::make(std::vector<NormalStep> steps) {
  if (steps.size() > kNormalStepsMax) {
    return make_error(ErrorCode::kUnsupported,
                      std::to_string(steps.size()) + " normalizers; at most " + std::to_string(kNormalStepsMax));
  }
  std::size_t growth = 1;
  for (const NormalStep& step : steps) {
    growth *= std::min(growth_of(step), kNormalGrowthMax + 1);
    if (growth > kNormalGrowthMax) {
      return make_error(ErrorCode::kUnsupported, "normalizers that make a text more than " +
                                                     std::to_string(kNormalGrowthMax) + " times as long");
    }
  }
  Normaliser made;
  made.steps_ = std::move(steps);
  return made;
}

std::string_view Normaliser::apply(std::string_view text, std::string& room) const {
  for (const NormalStep& step : steps_) {
    Applies applies{text, {}};
    if (!std::visit(applies, step)) continue;
    room = std::move(applies.out);
    text = room;
  }
  return text;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const std::size_t at = text.find(from);
    out.append(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    out.append(to);
    text.remove_prefix(at + from.size());
  }
}

}  // namespace shoal
