#include "runtime/generate/generate.h"

#include <algorithm>

#include "common/check.h"

namespace shoal {
namespace {

Result<std::vector<std::uint32_t>> prompt_ids(const GenerateOptions& options, const TextCode& code,
                                              std::uint64_t context) {
  std::vector<std::uint32_t> ids = options.begin ? code.begin() : std::vector<std::uint32_t>();
  const std::vector<std::uint32_t> prompt = code.ids_of(options.prompt);
  ids.insert(ids.end(), prompt.begin(), prompt.end());
  if (ids.empty()) {
    if (code.ends().empty())
      return make_error(ErrorCode::kInput,
                        "the prompt has no token, and no end of text is known that a text could begin behind. HINT: "
                        "give --prompt TEXT");
    ids.push_back(code.ends().front());
  }
  if (ids.size() >= context)
    return make_error(ErrorCode::kInput, "the prompt has " + std::to_string(ids.size()) +
                                             " tokens, and the model's context is " + std::to_string(context) +
                                             ": nothing can follow. HINT: give a shorter one");
  return ids;
}

std::vector<std::uint32_t> last_of(const Generated& made, std::uint64_t count) {
  std::vector<std::uint32_t> all = made.prompt;
  all.insert(all.end(), made.ids.begin(), made.ids.end());
  return {all.end() - static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(count, all.size())), all.end()};
}

}  // namespace

Result<Generation> Generation::begin(const GenerateOptions& options, TextCode code, std::uint64_t context) {
  Generation text(options, std::move(code), context);
  SHOAL_ASSIGN(text.made_.prompt, prompt_ids(options, text.code_, context));
  text.next_ = text.made_.prompt;
  text.places_ = text.next_.size();
  return text;
}

void Generation::plan_next(std::uint32_t id) {
  next_ = {id};
  anew_ = ++places_ >= context_;
  if (!anew_) return;
  next_ = last_of(made_, std::max<std::uint64_t>(1, context_ / 2));
  places_ = next_.size();
}

std::string Generation::take(std::span<const float> logits) {
  SHOAL_CHECK(!over());
  const std::uint32_t id = sampler_.next(logits);
  if (!options_.go_on && std::ranges::find(code_.ends(), id) != code_.ends().end()) return stop("end of text");
  made_.ids.push_back(id);
  plan_next(id);
  std::string piece = whole_.add(code_.bytes_of(id));
  made_.text += piece;
  if (made_.ids.size() >= options_.tokens) piece += stop("tokens");
  return piece;
}

std::string Generation::stop(std::string why) {
  made_.stopped_by = std::move(why);
  const std::string rest = whole_.rest();
  made_.text += rest;
  return rest;
}

Result<Generated> generate(const GenerateOptions& options, const TextCode& code, TextModel& model,
                           const std::function<bool(const std::string& piece)>& shown) {
  SHOAL_ASSIGN(Generation text, Generation::begin(options, code, model.context()));
  while (!text.over()) {
    if (text.anew()) model.restart();
    SHOAL_ASSIGN(const std::vector<float> logits, model.extend(text.next()));
    const std::string piece = text.take(logits);
    if (piece.empty() || !shown || shown(piece) || text.over()) continue;
    const std::string rest = text.stop("interrupted");
    if (!rest.empty()) (void)shown(rest);
  }
  return text.made();
}

}  // namespace shoal
