// Saved models of others: the file format, and a stage in it.
#include "stages/safetensors.h"

#include "common/byte_codec.h"
#include "stages/stage_file.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

Bytes joined(const std::vector<Bytes>& parts) {
  std::vector<std::uint8_t> all;
  for (const Bytes& part : parts) all.insert(all.end(), part.data(), part.data() + part.size());
  return Bytes::from_vector(std::move(all));
}

// Header and tensors with the length word that fits: a header ends where two objects do.
Bytes with_length(ByteView bytes) {
  const std::string_view text = text_in(bytes);
  std::size_t end = std::min(text.find("}}"), text.size() - std::min<std::size_t>(text.size(), 2)) + 2;
  while (end < text.size() && text[end] == ' ') ++end;  // padding
  std::vector<std::uint8_t> file;
  append_le(file, std::uint64_t{end});
  file.insert(file.end(), bytes.begin(), bytes.end());
  return Bytes::from_vector(std::move(file));
}

// What is accepted, written anew: the same tensors in the writer's order, by name.
void check_written_anew(const Safetensors& parsed) {
  const auto again = parse_safetensors(joined(safetensors_parts(parsed.metadata, parsed.tensors)));
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK_EQ(again->tensors.size(), parsed.tensors.size());
  std::map<std::string, TensorView> by_name;
  for (const NamedTensor& tensor : again->tensors) by_name[tensor.name] = tensor.tensor;
  for (const NamedTensor& tensor : parsed.tensors) {
    const TensorView& other = by_name.at(tensor.name);
    SHOAL_CHECK(other.dtype == tensor.tensor.dtype && other.shape == tensor.tensor.shape);
    SHOAL_CHECK(same_bytes(other.bytes, tensor.tensor.bytes));
  }
}

// Of every type that the format has: what stands in front is written anew, and says the same.
bool take_header(const Bytes& file) {
  const auto header = parse_safetensors_header(file, file.size());
  if (!header.ok()) return false;
  std::vector<SafetensorsHeader::Place> places = header->tensors;
  const Bytes front = safetensors_header(header->metadata, places);
  const auto again = parse_safetensors_header(front, places.empty() ? front.size() : places.back().end);
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK_EQ(again->tensors.size(), header->tensors.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    SHOAL_CHECK(again->tensors[i].type == places[i].type && again->tensors[i].shape == places[i].shape);
    SHOAL_CHECK_EQ(again->tensors[i].begin, places[i].begin);
  }
  return true;
}

bool take_file(const Bytes& file) {
  const bool has_header = take_header(file);
  const auto parsed = parse_safetensors(file);
  if (!parsed.ok()) {
    SHOAL_CHECK(!parse_stage_file(file).ok());
    return has_header;
  }
  check_written_anew(*parsed);
  if (const auto stage = parse_stage_file(file); stage.ok()) {
    SHOAL_CHECK_EQ(stage->parameters.size(), parameter_count(stage->spec));
    const auto again = parse_stage_file(joined(stage_file_parts(stage->spec, stage->parameters)));
    SHOAL_CHECK(again.ok() && again->spec == stage->spec);
  }
  return true;
}

bool take(ByteView bytes) {
  const bool as_it_is = take_file(Bytes::copy_of(bytes));
  return take_file(with_length(bytes)) || as_it_is;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const ModelSpec model{.layers = 2, .dim = 4, .heads = 1, .positions = 2, .vocabulary = 3, .seed = 1};
  const std::vector<StageSpec> specs = *split_model(model, 2);
  for (const StageSpec& spec : specs) {
    std::vector<float> parameters(parameter_count(spec));
    initialise(spec, parameters);
    const Bytes file = joined(stage_file_parts(spec, parameters));
    all.push_back(file);
    all.push_back(file.slice(8, file.size() - 8));
  }
  const std::vector<float> one{1.5f};
  const std::vector<std::uint8_t> words{1, 2, 3, 4};
  const Bytes small = joined(safetensors_parts(
      {{"a \"quoted\" \\ key", "line\nbreak\x01"}},
      {{"a", {DType::kF32, {1}, bytes_of(std::span<const float>(one))}}, {"b", {DType::kU16, {1, 2}, words}}}));
  all.push_back(small.slice(8, small.size() - 8));
  std::vector<SafetensorsHeader::Place> places;
  for (std::size_t type = 0; type < std::size(kStoredTypeNames); ++type)
    places.push_back({"t" + std::to_string(type), static_cast<StoredType>(type), {1}});
  const Bytes front = safetensors_header({}, places);
  std::vector<std::uint8_t> typed(front.data(), front.data() + front.size());
  typed.resize(places.back().end);
  all.push_back(Bytes::from_vector(std::move(typed)));
  return all;
}

}  // namespace

const Target safetensors{"safetensors", take, seeds};

}  // namespace shoal::fuzz
