#pragma once
// Folders as Python's transformers writes them, made by the tests themselves.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/check.h"
#include "kernels/half.h"
#include "stages/safetensors.h"
#include "stages/stage_spec.h"

namespace shoal {

using Json = nlohmann::json;

inline Json gpt2_json() {
  return {{"model_type", "gpt2"}, {"n_layer", 2},      {"n_embd", 8},        {"n_head", 2},
          {"n_positions", 6},     {"vocab_size", 11},  {"n_ctx", 6},         {"layer_norm_epsilon", 1e-5},
          {"attn_pdrop", 0.1},    {"embd_pdrop", 0.1}, {"resid_pdrop", 0.1}, {"activation_function", "gelu_new"},
          {"bos_token_id", 10},   {"eos_token_id", 10}};
}
inline Json llama_json() {
  return {{"model_type", "llama"},    {"num_hidden_layers", 2},       {"hidden_size", 8},
          {"num_attention_heads", 2}, {"num_key_value_heads", 1},     {"max_position_embeddings", 16},
          {"vocab_size", 11},         {"intermediate_size", 12},      {"rms_norm_eps", 1e-6},
          {"hidden_act", "silu"},     {"tie_word_embeddings", false}, {"rope_theta", 10000.0}};
}

struct TensorToWrite {
  std::string name;
  StoredType type = StoredType::kF32;
  Shape shape;
  std::vector<float> values;
};

inline std::vector<std::uint8_t> stored_bytes(const TensorToWrite& tensor) {
  std::vector<std::uint8_t> bytes(tensor.values.size() * size_of(tensor.type));
  if (tensor.type == StoredType::kBf16) {
    narrow_to_half(HalfFormat::kBf16, tensor.values, bytes);
  } else if (tensor.type == StoredType::kF16) {
    narrow_to_half(HalfFormat::kFp16, tensor.values, bytes);
  } else if (tensor.type == StoredType::kF32) {
    std::memcpy(bytes.data(), tensor.values.data(), bytes.size());
  }
  return bytes;
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline void write_tensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors) {
  std::vector<SafetensorsHeader::Place> places;
  std::map<std::string, const TensorToWrite*> by_name;
  for (const TensorToWrite& tensor : tensors) {
    places.push_back({tensor.name, tensor.type, tensor.shape});
    by_name[tensor.name] = &tensor;
  }
  const Bytes header = safetensors_header({}, places);
  std::string file(reinterpret_cast<const char*>(header.data()), header.size());
  for (const SafetensorsHeader::Place& place : places) {
    const std::vector<std::uint8_t> bytes = stored_bytes(*by_name.at(place.name));
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  write_text(path, file);
}

// A value of each parameter that 16-bit floats keep, and by which it is recognised.
inline std::vector<float> recognisable(const ParameterSpec& parameter, std::size_t number) {
  std::vector<float> values(static_cast<std::size_t>(element_count(parameter.shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((number * 7 + i) % 128) / 64.0f - 1.0f;
  return values;
}

class FolderWriter {
 public:
  explicit FolderWriter(const std::string& name)
      : path_(std::filesystem::path(::testing::TempDir()) / ("pretrained-" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~FolderWriter() { std::filesystem::remove_all(path_); }
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  std::string path() const { return path_.string(); }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  void config(const Json& json) const { write_text(file("config.json"), json.dump()); }

  // All parameters of the model; `name` gives each its name in the file, empty: it is left out.
  static std::vector<TensorToWrite> tensors_of(
      const ModelSpec& model, StoredType type,
      const std::function<std::string(const std::string&)>& name = [](const std::string& same) { return same; }) {
    std::vector<TensorToWrite> tensors;
    for (std::size_t number = 0; const ParameterSpec& parameter : parameters_of(split_model(model, 1)->front())) {
      const std::string written = name(parameter.name);
      if (!written.empty()) tensors.push_back({written, type, parameter.shape, recognisable(parameter, number)});
      ++number;
    }
    return tensors;
  }
  void single(const std::vector<TensorToWrite>& tensors) const { write_tensors(file("model.safetensors"), tensors); }
  // By turns into two files.
  void sharded(const std::vector<TensorToWrite>& tensors) const {
    std::vector<TensorToWrite> halves[2];
    Json map;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      halves[i % 2].push_back(tensors[i]);
      map[tensors[i].name] = shard(i % 2);
    }
    for (std::size_t i = 0; i < 2; ++i) write_tensors(file(shard(i)), halves[i]);
    index(map);
  }
  void index(const Json& map) const {
    write_text(file("model.safetensors.index.json"), Json{{"metadata", Json::object()}, {"weight_map", map}}.dump());
  }
  static std::string shard(std::size_t i) { return "model-0000" + std::to_string(i + 1) + "-of-00002.safetensors"; }

 private:
  std::filesystem::path path_;
};

}  // namespace shoal
