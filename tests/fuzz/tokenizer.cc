// tokenizer.json, as somebody published it.
#include "text/tokenizer.h"

#include <array>

#include "tests/fuzz/target.h"
#include "text/train_bpe.h"

namespace shoal::fuzz {
namespace {

constexpr std::array<std::string_view, 4> kTexts = {
    "", "the theory  of it's 123\r\n\tx", "\u4f60\u597d e\u0301 \U0001F600<|endoftext|>", "\xFF\xE2\x82 \u2581<s>"};

// Whatever is accepted encodes every text to ids that are below its vocabulary, and takes them back.
bool take(ByteView bytes) {
  const auto tokenizer = Tokenizer::parse(bytes, "tokenizer.json");
  if (!tokenizer.ok()) return false;
  for (const std::string_view text : kTexts) {
    std::vector<std::uint32_t> ids, again;
    tokenizer->encode(text, ids);
    tokenizer->encode(text, again);
    SHOAL_CHECK(ids == again);
    for (const std::uint32_t id : ids) SHOAL_CHECK_LT(id, tokenizer->vocabulary());
    tokenizer->decode(ids, true);
    tokenizer->decode(ids, false);
    for (const std::uint32_t id : ids) tokenizer->bytes_of(id);
  }
  return true;
}

std::string small(std::string_view normalizer, std::string_view pre_tokenizer, std::string_view decoder) {
  std::string json = R"({"added_tokens":[{"id":6,"content":"<s>","special":true,"lstrip":true,"rstrip":true},)"
                     R"({"id":7,"content":"it","normalized":true,"single_word":true}],"normalizer":)";
  json.append(normalizer).append(R"(,"pre_tokenizer":)").append(pre_tokenizer).append(R"(,"decoder":)").append(decoder);
  return json + R"(,"model":{"type":"BPE","byte_fallback":)" +
         (pre_tokenizer.find("ByteLevel") == std::string_view::npos ? "true" : "false") +
         R"(,"fuse_unk":true,"unk_token":"<unk>","ignore_merges":false,"vocab":{"<unk>":0,"t":1,"h":2,"th":3,"<0x20>":4,"▁":5},)"
         R"("merges":["t h"]}})";
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  all.push_back(Bytes::copy_of(small(
      R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]})",
      "null",
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})")));
  all.push_back(Bytes::copy_of(small(R"({"type":"NFKC"})",
                                     R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true})",
                                     R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first"})")));
  all.push_back(Bytes::copy_of(small(
      "null",
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"Split","pattern":{"Regex":"(?i:'s)|[^\\r\\n\\p{L}]?\\p{L}+|\\s+(?!\\S)|\\w{1,3}"},"behavior":"MergedWithNext","invert":true},{"type":"ByteLevel","add_prefix_space":true,"use_regex":true}]})",
      R"({"type":"ByteLevel"})")));
  BpeTrainer trainer;
  trainer.add("the theory of the thing");
  all.push_back(Bytes::copy_of(*trainer.finish(262)));
  return all;
}

}  // namespace

const Target tokenizer{"tokenizer", take, seeds};

}  // namespace shoal::fuzz
