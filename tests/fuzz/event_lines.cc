// Event files of others, as the audit reads them and as it judges them. A form feed stands between two files.
#include "events/event_lines.h"

#include "tests/audit/audit_story.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool take_file(std::string_view text) {
  const EventSource source = text_source("peer", text);
  EventLines lines(source);
  std::uint64_t complete = 0, last = 0;
  while (true) {
    const auto next = lines.next();
    SHOAL_CHECK(next.ok());
    if (*next == nullptr) break;
    SHOAL_CHECK_LT(last, lines.number());
    last = lines.number();
    complete += lacking_field(**next).empty() ? 1u : 0u;
  }
  (void)lines.take_damaged();
  SHOAL_CHECK_LE(complete, lines.lines());
  return complete > 0;
}

bool take(ByteView bytes) {
  std::string_view rest = text_in(bytes);
  std::map<std::string, std::string> files;
  bool any = false;
  while (!rest.empty()) {
    const std::string_view text = rest.substr(0, rest.find('\f'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    any = take_file(text) || any;
    files[std::to_string(files.size())] = text;
  }
  (void)audit_texts(files);
  return any;
}

std::vector<Bytes> seeds() {
  std::string all;
  for (const auto& [name, text] : story_with_a_loss(true).files()) all += (all.empty() ? "" : "\f") + text;
  return {Bytes::copy_of(all)};
}

}  // namespace

const Target event_lines{"event_lines", take, seeds};

}  // namespace shoal::fuzz
