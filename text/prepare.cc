#include "text/prepare.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "common/os/posix_file.h"
#include "text/token_writer.h"

namespace shoal {
namespace {

constexpr std::size_t kBatchBytes = 256u << 10, kBatchPieces = 4096;  // whichever comes first
constexpr std::size_t kSourcesNamed = 1000;

// Pieces that are encoded and written as one.
struct Batch {
  std::vector<Piece> pieces;
  bool begins = true;  // a document, and does not go on with one
  std::uint64_t documents = 0, empty = 0, bytes = 0;
  std::vector<std::uint32_t> ids;
};

// Threads that take the next batch each, in turn, and encode it; the batches come out in their order. At most kAhead a
// thread are there at a time.
class Encoders {
 public:
  Encoders(const TextEncoder& encoder, const PrepareOptions& options)
      : encoder_(encoder),
        begin_(options.begin_of_text ? encoder.begin : std::vector<std::uint32_t>()),
        end_of_text_(options.end_of_text ? encoder.end_of_text : std::nullopt),
        reader_(options.inputs,
                {.field = options.documents.field, .lines = options.documents.lines, .cut = encoder.cut}),
        ahead_(kAhead * options.threads),
        running_(options.threads) {
    for (unsigned i = 0; i < options.threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Encoders() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
  }
  Encoders(const Encoders&) = delete;
  Encoders& operator=(const Encoders&) = delete;

  // The next batch, or why there is none: an error, or all are out. False within it: not yet, after a fifth of a
  // second.
  struct Turn {
    bool over = false;
    std::optional<Batch> batch = {};
  };
  Result<Turn> next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return done_.contains(out_) || running_ == 0; });
    if (const auto ready = done_.find(out_); ready != done_.end()) {
      Turn turn{.batch = std::move(ready->second)};
      done_.erase(ready);
      ++out_;
      changed_.notify_all();
      return turn;
    }
    if (running_ > 0) return Turn{};
    if (error_) return *error_;
    return Turn{.over = true};
  }
  std::uint64_t taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  // REQUIRES: all batches are out.
  TextChanges changes() const { return reader_.changes(); }

 private:
  static constexpr std::uint64_t kAhead = 4;

  void work() {
    while (true) {
      Batch batch;
      std::uint64_t number = 0;
      if (!read(batch, number)) break;
      encode(batch);
      const std::lock_guard lock(mutex_);
      done_.emplace(number, std::move(batch));
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  // False: there is no more, or no more is wanted.
  bool read(Batch& batch, std::uint64_t& number) {
    const std::lock_guard turn(reading_);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return over_ || in_ < out_ + ahead_; });
      if (over_) return false;
    }
    const Status status = fill(batch);
    const std::lock_guard lock(mutex_);
    taken_ = reader_.taken();
    number = in_++;
    over_ = over_ || all_read_ || !status.ok();
    if (!status.ok()) error_ = status.error();
    return status.ok();
  }

  Status fill(Batch& batch) {
    Piece piece;
    batch.begins = !within_;
    while (batch.bytes < kBatchBytes && batch.pieces.size() < kBatchPieces) {
      SHOAL_ASSIGN(const bool given, reader_.next(piece));
      all_read_ = !given;
      if (all_read_) break;
      const bool empty = piece.text.empty() && piece.ends_document && !within_;
      within_ = !piece.ends_document;
      if (empty) ++batch.empty;
      if (!empty && piece.ends_document) ++batch.documents;
      batch.bytes += piece.text.size();
      if (!empty) batch.pieces.push_back(std::exchange(piece, {}));
    }
    return {};
  }

  void encode(Batch& batch) const {
    bool begins = batch.begins;
    for (const Piece& piece : batch.pieces) {
      if (begins) batch.ids.insert(batch.ids.end(), begin_.begin(), begin_.end());
      begins = piece.ends_document;
      encoder_.encode(piece.text, batch.ids);
      if (piece.ends_document && end_of_text_) batch.ids.push_back(*end_of_text_);
    }
    batch.pieces.clear();
  }

  const TextEncoder& encoder_;
  const std::vector<std::uint32_t> begin_;
  const std::optional<std::uint32_t> end_of_text_;
  std::mutex reading_;     // held in front of mutex_
  DocumentReader reader_;  // guarded by reading_, as the next two
  bool within_ = false;    // a document of which more pieces come
  bool all_read_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Batch> done_;  // guarded by mutex_, as what follows: encoded, by number
  std::uint64_t in_ = 0, out_ = 0;       // batches that were read; that were given out
  const std::uint64_t ahead_;
  std::uint64_t taken_ = 0;
  bool over_ = false;
  std::optional<Error> error_;
  unsigned running_;
  std::vector<std::jthread> threads_;  // the last member: they use the others
};

Status check_options(const TextEncoder& encoder, const PrepareOptions& options, DType width) {
  const auto refuse = [](std::string why) { return make_error(ErrorCode::kInput, std::move(why)); };
  if (encoder.vocabulary > ids_of_width(width))
    return refuse("the tokenizer has " + std::to_string(encoder.vocabulary) + " ids, which " +
                  std::string(name_of_width(width)) + " cannot say. HINT: --width u32");
  if (options.end_of_text && !encoder.end_of_text)
    return refuse("the tokenizer has no token that ends a text. HINT: --no-eot, and nothing stands between documents");
  std::vector<std::string> read = options.inputs;
  if (!options.tokenizer.empty()) read.push_back(options.tokenizer);
  SHOAL_TRY(check_output_file(options.out, read));
  return check_output_file(sidecar_path(options.out), read);
}

std::vector<std::string> sources_of(const std::vector<std::string>& inputs) {
  std::vector<std::string> names(inputs.begin(),
                                 inputs.begin() + static_cast<std::ptrdiff_t>(std::min(inputs.size(), kSourcesNamed)));
  if (inputs.size() > kSourcesNamed) names.push_back(std::to_string(inputs.size() - kSourcesNamed) + " more");
  return names;
}

}  // namespace

Result<Prepared> prepare_text(const TextEncoder& encoder, const PrepareOptions& options) {
  SHOAL_CHECK(options.threads > 0 && !options.inputs.empty());
  const DType width =
      options.width.value_or(encoder.vocabulary > ids_of_width(DType::kU16) ? DType::kU32 : DType::kU16);
  SHOAL_TRY(check_options(encoder, options, width));
  SHOAL_ASSIGN(TokenWriter writer, TokenWriter::open(options.out, width, options.header));
  const std::uint64_t total = bytes_of_files(options.inputs);
  Prepared prepared;
  Encoders encoders(encoder, options);
  while (true) {
    SHOAL_ASSIGN(const Encoders::Turn turn, encoders.next());
    if (options.stop && options.stop())
      return make_error(ErrorCode::kInterrupted, options.out + " was not written: interrupted");
    if (options.progress) options.progress(encoders.taken(), total);
    if (turn.over) break;
    if (!turn.batch) continue;
    SHOAL_TRY(writer.write(turn.batch->ids));
    prepared.sidecar.documents += turn.batch->documents;
    prepared.empty_documents += turn.batch->empty;
    prepared.text_bytes += turn.batch->bytes;
  }
  prepared.changes = encoders.changes();
  if (writer.tokens() == 0)
    return make_error(ErrorCode::kInput, "the inputs have no text: " + std::to_string(prepared.empty_documents) +
                                             " empty documents. HINT: are these the files that you meant?");
  prepared.sidecar.width = width;
  prepared.sidecar.tokens = writer.tokens();
  prepared.sidecar.vocabulary = encoder.vocabulary;
  prepared.sidecar.tokenizer = encoder.digest;
  prepared.sidecar.source = sources_of(options.inputs);
  SHOAL_TRY(writer.finish(prepared.sidecar));
  return prepared;
}

}  // namespace shoal
