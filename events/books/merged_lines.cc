#include "events/books/merged_lines.h"

#include <algorithm>
#include <filesystem>

namespace shoal {

Result<MergedLines> MergedLines::whole(const std::string& folder, const ReadProgress& progress) {
  SHOAL_ASSIGN(const std::vector<EventSource> sources, sources_in(folder, progress));
  MergedLines lines;
  for (const EventSource& source : sources) lines.add(source, false);
  for (std::size_t i = 0; i < lines.files_.size(); ++i) SHOAL_TRY(lines.ask(i));
  return lines;
}

void MergedLines::add(const EventSource& source, bool grows) {
  files_.push_back(std::make_unique<File>(File{.lines = EventLines(source, grows)}));
}

Status MergedLines::ask(std::size_t at) {
  File& file = *files_[at];
  do {
    SHOAL_ASSIGN(file.event, file.lines.next());
    if (file.event == nullptr) return idle_.push_back(at), Status();
    file.time = std::max(file.time, file.event->time);
  } while (file.event->row == nullptr);
  next_.emplace(file.time, at);
  return {};
}

Result<std::optional<SeenEvent>> MergedLines::next() {
  if (const std::size_t given = std::exchange(given_, SIZE_MAX); given != SIZE_MAX) SHOAL_TRY(ask(given));
  if (next_.empty()) return std::optional<SeenEvent>();
  given_ = next_.top().second;
  next_.pop();
  const ReadEvent& event = *files_[given_]->event;
  return std::optional<SeenEvent>({event, files_[given_]->time, !event.is_peer(), event.session, event.run});
}

Status MergedLines::look_again() {
  std::error_code failure;
  if (!std::filesystem::is_directory(folder_, failure))
    return make_error(ErrorCode::kMissing, folder_ + ": no such folder");
  SHOAL_ASSIGN(const std::vector<EventFile> there, event_files_in(folder_));
  if (there.empty())
    return make_error(ErrorCode::kMissing, folder_ + ": holds no *.jsonl file (written by --events FILE)");
  for (const EventFile& file : there) {
    if (known_.contains(file.path)) continue;
    SHOAL_ASSIGN(const EventSource source, growing_source(file.path));
    known_.insert(file.path);
    idle_.push_back(files_.size());
    add(source, true);
  }
  for (const std::size_t file : std::exchange(idle_, {})) SHOAL_TRY(ask(file));
  return {};
}

}  // namespace shoal
