#include "cli/document_inputs.h"

#include <algorithm>
#include <thread>

#include "cli/text_codes.h"
#include "common/log.h"
#include "common/os/stop_signals.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "text/text_ends.h"

namespace shoal {

void add_document_inputs(Command& command, DocumentInputs& inputs) {
  command
      .add_option("inputs", inputs.files,
                  "text files, a document each; of JSON: one an object; also packed (gzip, zstd)")
      .required()
      .type_name("IN");
  command.add_option("--field", inputs.field, "of JSON: the field with the document (default: text)");
  command.add_option("--documents", inputs.documents, "of other files: each is a document (default), or each line")
      .one_of({"files", "lines"});
}

Result<Prepared> prepare_with(const std::string& tokenizer, PrepareOptions options) {
  SHOAL_ASSIGN(const Tokenizer loaded, Tokenizer::load(tokenizer));
  if (const std::string begin = begin_said(loaded.begin()); options.begin_of_text && !begin.empty())
    log_info("each document", begin, "; data prepare --no-bos leaves it out");
  const TextEncoder encoder{
      .encode = [&](std::string_view text, std::vector<std::uint32_t>& ids) { loaded.encode(text, ids); },
      .vocabulary = loaded.vocabulary(),
      .begin = loaded.begin(),
      .end_of_text = document_end(text_ends_of({}, tokenizer), loaded),
      .digest = loaded.digest(),
      .cut = [&](std::string_view text, std::size_t most) { return loaded.safe_cut(text, most); }};
  listen_for_stop();
  HeadwayMeter meter;
  options.tokenizer = tokenizer;
  if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.stop = [] { return stop_wanted(); };
  options.progress = [&meter](std::uint64_t done, std::uint64_t total) {
    show_headway(meter, {.what = "preparing", .done = done, .total = total, .bytes = true});
  };
  auto prepared = prepare_text(encoder, options);
  end_status();
  if (prepared.ok()) say_changes(prepared->changes);
  return prepared;
}

void say_changes(const TextChanges& changes) {
  if (changes.converted > 0) log_warning("UTF-16 was read as the same text in UTF-8: files: ", changes.converted);
  if (changes.replaced > 0)
    log_warning(changes.replaced,
                " times the texts are no UTF-8, which was read as U+FFFD. HINT: iconv -f ENCODING -t UTF-8 makes "
                "UTF-8 of text in another encoding");
}

}  // namespace shoal
