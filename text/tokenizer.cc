#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "common/file_pointer.h"
#include "common/os/posix_file.h"
#include "text/tokenizer_file.h"
#include "text/utf8.h"

namespace shoal {
namespace {

constexpr std::array<std::string_view, 4> kEnds = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>"};

// What one call of encode needs; kept for the next one.
struct EncodeRoom {
  MatchRoom match;
  BpeRoom bpe;
  std::string normal;
  std::vector<TextSection> sections;
  std::vector<TextSection> normal_sections;
};

Error in_file(const std::string& origin, const Error& error) {
  const std::string hint = error.code == ErrorCode::kUnsupported
                               ? ". HINT: shoal has byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM) and BPE with byte "
                                 "fallback (Llama 2, Mistral); docs/FILES.md says what of them"
                               : kMakeTokenizerHint;
  return make_error(error.code, "cannot use " + origin + " as a tokenizer: " + error.message + hint);
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(TokenizerFile file)
      : contents(std::move(file.contents)),
        ids(std::move(file.ids)),
        bpe(file.rules),
        normaliser(std::move(file.normaliser)),
        pre_tokenizer(std::move(file.pre_tokenizer.steps)),
        decoder(std::move(file.decoder)),
        begin(std::move(file.begin)),
        special(contents.size()) {
    for (const bool specials : {true, false}) {  // special ones come first
      for (const AddedToken& token : file.added)
        if (token.special == specials) add(token);
    }
    bytes.reserve(contents.size());
    for (const std::string& content : contents) bytes.push_back(decoder.bytes_of(content));
  }

  void add(const AddedToken& token) {
    special[token.id] = token.special;
    if (!token.normalized) return raw.add(token, token.content);
    std::string room;
    const std::string_view content = normaliser.apply(token.content, room);
    if (content.empty()) return;
    normal.add(token, content);
    contents[token.id] = content;  // what it becomes again, too
  }

  // A room that no other call has, until it is given back.
  std::unique_ptr<EncodeRoom> take_room() const {
    const std::lock_guard lock(rooms_mutex);
    if (rooms.empty()) return std::make_unique<EncodeRoom>();
    std::unique_ptr<EncodeRoom> room = std::move(rooms.back());
    rooms.pop_back();
    return room;
  }
  void give_back(std::unique_ptr<EncodeRoom> room) const {
    const std::lock_guard lock(rooms_mutex);
    rooms.push_back(std::move(room));
  }

  void encode(std::string_view text, EncodeRoom& room, std::vector<std::uint32_t>& out) const;
  void encode_section(std::string_view text, bool at_start, EncodeRoom& room, std::vector<std::uint32_t>& out) const;
  std::vector<bool> sure_cuts(std::string_view normal_text, std::size_t most, MatchRoom& room) const;
  bool cuts_alike(std::string_view text, std::size_t at, EncodeRoom& room) const;

  std::vector<std::string> contents;  // by id, normalized where they are looked for so
  std::unordered_map<std::string, std::uint32_t> ids;
  Bpe bpe;
  Normaliser normaliser;
  PreTokenizer pre_tokenizer;
  TokenDecoder decoder;
  std::vector<std::uint32_t> begin;
  TokenFinder raw;     // in the text as it came
  TokenFinder normal;  // in the normalized text
  std::vector<bool> special;
  std::vector<std::string> bytes;  // of each id alone
  Digest digest;

  mutable std::mutex rooms_mutex;
  mutable std::vector<std::unique_ptr<EncodeRoom>> rooms;  // as many as calls ran at once
};

void Tokenizer::Parts::encode(std::string_view text, EncodeRoom& room, std::vector<std::uint32_t>& out) const {
  room.sections.clear();
  raw.cut(text, room.match, room.sections);
  for (const TextSection& section : room.sections) {
    if (section.token) {
      out.push_back(*section.token);
    } else {
      const TextRange range = section.range;
      encode_section(text.substr(range.begin, range.end - range.begin), range.begin == 0, room, out);
    }
  }
}

void Tokenizer::Parts::encode_section(std::string_view text, bool at_start, EncodeRoom& room,
                                      std::vector<std::uint32_t>& out) const {
  const std::string_view normal_text = normaliser.apply(text, room.normal);
  room.normal_sections.clear();
  normal.cut(normal_text, room.match, room.normal_sections);
  const PreTokenizer::Take take = [&](std::string_view piece) { bpe.encode(piece, room.bpe, out); };
  for (const TextSection& section : room.normal_sections) {
    if (section.token) {
      out.push_back(*section.token);
    } else {
      const TextRange range = section.range;
      pre_tokenizer.cut(normal_text.substr(range.begin, range.end - range.begin), at_start && range.begin == 0,
                        room.match, take);
    }
  }
}

// At which places up to `most` every cutting ends a piece, wherever in front of the place it began.
std::vector<bool> Tokenizer::Parts::sure_cuts(std::string_view normal_text, std::size_t most, MatchRoom& room) const {
  std::vector<bool> sure(normal_text.size() + 1);
  std::size_t reach = 0;
  for (std::size_t at = 0; at <= most && at < normal_text.size(); at += character_bytes(normal_text[at])) {
    sure[at] = reach <= at && at > 0;
    const auto end = pre_tokenizer.first_end(normal_text.substr(at), room);
    if (!end) break;
    reach = std::max(reach, at + *end);
  }
  return sure;
}

// Whether the ids of the two parts are those of the whole.
bool Tokenizer::Parts::cuts_alike(std::string_view text, std::size_t at, EncodeRoom& room) const {
  std::vector<std::uint32_t> whole, parts;
  encode(text, room, whole);
  encode(text.substr(0, at), room, parts);
  encode(text.substr(at), room, parts);
  return whole == parts;
}

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  SHOAL_ASSIGN(const Bytes json, read_file(path, kTokenizerBytesMax));
  return parse(json, path);
}

Result<Tokenizer> Tokenizer::parse(ByteView json, const std::string& origin) {
  if (json.size() > kTokenizerBytesMax) {
    return make_error(ErrorCode::kTooLarge, origin + " has " + std::to_string(json.size()) +
                                                " bytes; a tokenizer has at most " +
                                                std::to_string(kTokenizerBytesMax));
  }
  if (is_file_pointer(json)) return file_pointer_error(origin);
  auto file = read_tokenizer_file(json);
  if (!file.ok()) return in_file(origin, file.error());
  auto parts = std::make_unique<Parts>(std::move(*file));
  parts->digest = blake2b_256(json);
  return Tokenizer(std::move(parts));
}

void Tokenizer::encode(std::string_view text, std::vector<std::uint32_t>& ids) const {
  std::unique_ptr<EncodeRoom> room = parts_->take_room();
  if (is_utf8(text)) {
    parts_->encode(text, *room, ids);
  } else {
    parts_->encode(with_replacements(text), *room, ids);
  }
  parts_->give_back(std::move(room));
}

std::optional<std::size_t> Tokenizer::safe_cut(std::string_view text, std::size_t most) const {
  constexpr std::size_t kAhead = 4 * kCutLookedBack;
  constexpr int kTried = 64;
  std::unique_ptr<EncodeRoom> room = parts_->take_room();
  const auto character_begin = [&](std::size_t at) {
    while (at < text.size() && at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return at;
  };
  std::optional<std::size_t> found;
  int tried = 0;
  for (std::size_t last = character_begin(std::min(most, text.size())); last > 0 && !found && tried < kTried;) {
    const std::size_t begin = character_begin(last - std::min(last, kCutLookedBack));
    const std::size_t end = character_begin(std::min(text.size(), last + kAhead));
    const std::string_view window = text.substr(begin, end - begin);
    std::string normal, front;
    const std::string_view normal_window = parts_->normaliser.apply(window, normal);
    const std::size_t normal_most = parts_->normaliser.apply(window.substr(0, last - begin), front).size();
    const std::vector<bool> sure = parts_->sure_cuts(normal_window, normal_most, room->match);
    for (std::size_t at = last; at > begin && !found && tried < kTried; at = character_begin(at - 1)) {
      const std::string_view normal_front = parts_->normaliser.apply(window.substr(0, at - begin), front);
      if (normal_front.size() > normal_window.size() || !sure[normal_front.size()] ||
          !normal_window.starts_with(normal_front))
        continue;
      ++tried;
      if (parts_->cuts_alike(window, at - begin, *room)) found = at;
    }
    last = begin;
  }
  parts_->give_back(std::move(room));
  return found;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool with_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::uint32_t id : ids) {
    if (id < vocabulary() && (with_special || !parts_->special[id])) tokens.push_back(parts_->contents[id]);
  }
  return parts_->decoder.text_of(std::move(tokens));
}

std::string Tokenizer::bytes_of(std::uint32_t id) const {
  return id < vocabulary() ? parts_->bytes[id] : std::string();
}

std::uint32_t Tokenizer::vocabulary() const { return static_cast<std::uint32_t>(parts_->contents.size()); }

std::optional<std::uint32_t> Tokenizer::id_of(std::string_view content) const {
  const auto found = parts_->ids.find(std::string(content));
  if (found == parts_->ids.end()) return std::nullopt;
  return found->second;
}

bool Tokenizer::is_special(std::uint32_t id) const { return id < vocabulary() && parts_->special[id]; }

const std::vector<std::uint32_t>& Tokenizer::begin() const { return parts_->begin; }

std::optional<std::uint32_t> Tokenizer::end_of_text() const {
  for (const std::string_view content : kEnds) {
    if (const auto id = id_of(content)) return id;
  }
  return std::nullopt;
}

const Digest& Tokenizer::digest() const { return parts_->digest; }

}  // namespace shoal
