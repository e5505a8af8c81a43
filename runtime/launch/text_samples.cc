#include "runtime/launch/text_samples.h"

#include <algorithm>
#include <cctype>

namespace shoal {
namespace {

// One line: what a terminal would act on becomes a space.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return text;
}

GenerateOptions options_of(const ReportSection& report, const TextCode& code, std::uint64_t step) {
  GenerateOptions options{.prompt = report.sample_prompt, .tokens = report.sample_tokens, .sampling = {}};
  if (options.prompt.empty() && code.begin().empty() && code.ends().empty()) options.prompt = "\n";
  options.sampling.seed = step;
  return options;
}

}  // namespace

TextSamples::TextSamples(const ReportSection& report, Environment environment)
    : report_(report),
      env_(std::move(environment)),
      text_({}, SwarmText::Environment{env_.loop, env_.links, env_.specs, env_.rng.fork("texts")}) {}

void TextSamples::on_validation(std::uint64_t step) {
  if (report_.sample_every == 0 || ++validations_ % report_.sample_every != 0 || generation_) return;
  step_ = step;
  auto begun =
      Generation::begin(options_of(report_, env_.code, step), env_.code, env_.specs.front().model.context_length());
  if (!begun.ok()) return env_.show("no text is shown: " + begun.error().message);
  generation_.emplace(*std::move(begun));
  text_.restart();
  go_on();
}

void TextSamples::go_on() {
  if (generation_->over())
    return end("step " + std::to_string(step_) +
               " writes: " + on_one_line(report_.sample_prompt + generation_->made().text));
  if (generation_->anew()) text_.restart();
  text_.extend(generation_->next(), [this](const Result<std::vector<float>>& logits) {
    if (!logits.ok()) return end("the text at step " + std::to_string(step_) + ": " + logits.error().message);
    (void)generation_->take(*logits);
    go_on();
  });
}

void TextSamples::end(const std::string& line) {
  generation_.reset();
  env_.show(line);
}

}  // namespace shoal
