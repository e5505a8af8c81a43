// A checkpoint, as it lies on a disk that anybody may have written to: as it is, and with digest and signature anew.
#include "state/checkpoint.h"

#include <charconv>
#include <cmath>

#include "stages/integer_executor.h"
#include "stages/safetensors.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

const KeyPair& key() {
  static const KeyPair pair = KeyPair::from_seed({1});
  return pair;
}

Bytes joined(const std::vector<Bytes>& parts) {
  std::vector<std::uint8_t> all;
  for (const Bytes& part : parts) all.insert(all.end(), part.data(), part.data() + part.size());
  return Bytes::from_vector(std::move(all));
}

// What must hold of one that is accepted.
void check(const Checkpoint& checkpoint) {
  const StateHeader& state = checkpoint.info.state;
  const auto header = parse_state_header(checkpoint.image);
  SHOAL_CHECK(header.ok());
  SHOAL_CHECK(header->rule == state.rule && header->roles == state.roles && header->stage == state.stage);
  SHOAL_CHECK(header->version == state.version && header->tag == state.tag && header->floats == state.floats);
  SHOAL_CHECK_EQ(std::size_t{state.roles}, OuterRules().of(state.rule)->shared_roles().size());
  SHOAL_CHECK(digest_of_image(checkpoint.image) == checkpoint.info.digest);
  const ByteView arrays = checkpoint.image.view().subspan(kStateHeaderBytes);
  for (std::size_t at = 0; at < arrays.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, arrays.data() + at, sizeof value);
    SHOAL_CHECK(std::isfinite(value));
  }
  const CheckpointOrigin origin{
      .run = checkpoint.info.run, .sequence = checkpoint.info.sequence, .saved_s = checkpoint.info.saved_s};
  const auto again = parse_checkpoint(joined(checkpoint_parts(origin, checkpoint.image, key())));
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK(same_bytes(again->image, checkpoint.image) && again->info.run == checkpoint.info.run);
  SHOAL_CHECK(again->info.sequence == origin.sequence && again->info.saved_s == origin.saved_s);
}

bool take_file(const Bytes& file) {
  const auto read = parse_checkpoint(file);
  if (read.ok()) check(*read);
  return read.ok();
}

// The digest that its arrays have, where they are whole floats; else the one that it has.
std::string digest_of(const Safetensors& file) {
  const auto value = [&file](const char* name) {
    const auto found = file.metadata.find(name);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  const std::string tag = value("shoal.tag");
  const std::size_t size = file.tensors.front().tensor.bytes.size();
  StateHeader header;
  header.rule = value("shoal.rule") == kRuleNames[0] ? RuleId::kAllreduce : RuleId::kDiloco;
  header.roles = static_cast<std::uint8_t>(file.tensors.size() - 1);
  header.floats = size / sizeof(float);
  std::from_chars(tag.data(), tag.data() + tag.size(), header.tag);
  Buffer image = begin_state_image(header);
  for (std::uint8_t* at = image.data() + kStateHeaderBytes; const NamedTensor& each : file.tensors) {
    if (each.tensor.bytes.size() != size || size % sizeof(float) != 0) return value("shoal.digest");
    at = std::ranges::copy(each.tensor.bytes, at).out;
  }
  return hex_of(digest_of_image(std::move(image).freeze()));
}

// Signed anew, as docs/FILES.md says.
bool take_mended(const Bytes& file) {
  auto parsed = parse_safetensors(file);
  if (!parsed.ok() || parsed->tensors.empty() || parsed->tensors.size() > 256) return false;
  parsed->metadata["shoal.digest"] = digest_of(*parsed);
  parsed->metadata["shoal.peer"] = hex_of(key().id());
  parsed->metadata.erase("shoal.signature");
  std::string text = "shoal checkpoint 1\n";
  for (const auto& [name, value] : parsed->metadata)
    if (name.starts_with("shoal.")) text += name + "=" + value + "\n";
  const Signature signature = key().sign({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  parsed->metadata["shoal.signature"] = hex_of(signature.data(), signature.size());
  return take_file(joined(safetensors_parts(parsed->metadata, parsed->tensors)));
}

bool take(ByteView bytes) {
  const Bytes file = Bytes::copy_of(bytes);
  const bool as_it_is = take_file(file);
  const bool mended = take_mended(file);
  return as_it_is || mended;
}

std::vector<Bytes> seeds() {
  const ModelSpec model{.layers = 1, .dim = 4, .heads = 1, .positions = 4, .vocabulary = 16, .seed = 1};
  std::vector<Bytes> all;
  for (const RuleId id : {RuleId::kAllreduce, RuleId::kDiloco}) {
    IntegerExecutor executor(split_model(model, 1).value()[0]);
    begin_from_seed(executor);
    const CheckpointOrigin origin{.run = {}, .sequence = 7, .saved_s = 1'700'000'000};
    all.push_back(
        joined(checkpoint_parts(origin, make_state_image(executor, *OuterRules().of(id), Version(3)), key())));
  }
  return all;
}

}  // namespace

const Target checkpoint{"checkpoint", take, seeds};

}  // namespace shoal::fuzz
