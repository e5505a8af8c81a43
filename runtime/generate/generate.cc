#include "runtime/generate/generate.h"

#include <algorithm>

namespace shoal {
namespace {

Result<std::vector<std::uint32_t>> prompt_ids(const GenerateOptions& options, const TextCode& code,
                                              std::uint64_t context) {
  std::vector<std::uint32_t> ids = code.ids_of(options.prompt);
  if (ids.empty()) {
    const auto end = code.end_of_text();
    if (!end)
      return make_error(ErrorCode::kInput,
                        "the prompt has no token, and no end of text is known that a text could begin behind. HINT: "
                        "give --prompt TEXT");
    ids.push_back(*end);
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

Result<Generated> generate(const GenerateOptions& options, const TextCode& code, TextModel& model,
                           const std::function<bool(const std::string& piece)>& shown) {
  Generated made;
  SHOAL_ASSIGN(made.prompt, prompt_ids(options, code, model.context()));
  Sampler sampler(options.sampling);
  WholeCharacters whole;
  std::vector<std::uint32_t> next = made.prompt;
  const auto show = [&](const std::string& piece) {
    made.text += piece;
    return piece.empty() || !shown || shown(piece);
  };
  std::uint64_t places = made.prompt.size();  // that the model has, with those in `next`
  made.stopped_by = "tokens";
  while (made.ids.size() < options.tokens) {
    SHOAL_ASSIGN(const std::vector<float> logits, model.extend(next));
    const std::uint32_t id = sampler.next(logits);
    if (!options.go_on && code.end_of_text() == id) {
      made.stopped_by = "end of text";
      break;
    }
    made.ids.push_back(id);
    if (!show(whole.add(code.bytes_of(id)))) {
      made.stopped_by = "interrupted";
      break;
    }
    next = {id};
    if (++places >= model.context()) {
      model.restart();
      next = last_of(made, std::max<std::uint64_t>(1, model.context() / 2));
      places = next.size();
    }
  }
  show(whole.rest());
  return made;
}

}  // namespace shoal
