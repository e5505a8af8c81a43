// config.json of a model from elsewhere.
#include "stages/pretrained/model_config.h"
#include "stages/stage_file.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool take(ByteView bytes) {
  const auto config = parse_pretrained_config(text_in(bytes));
  if (!config.ok()) {
    SHOAL_CHECK(!config.error().message.empty() && config.error().message.size() < 1024);
    return false;
  }
  for (const std::string& note : config->notes) SHOAL_CHECK_LE(note.size(), 4096u);
  SHOAL_CHECK(split_model(config->model, 1).ok());
  // What is accepted can be written as a config of ours, which means the same model but for what it spells out.
  const auto again = parse_pretrained_config(text_in(architecture_file(config->model)));
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK(!again->tied);
  ModelSpec same = again->model;
  if (config->model.kv_heads == 0) same.kv_heads = 0;
  if (config->model.head_width == 0) same.head_width = 0;
  if (config->model.inner == 0) same.inner = 0;
  SHOAL_CHECK(same == config->model);
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  ModelSpec model{.layers = 2, .dim = 8, .heads = 2, .positions = 4, .vocabulary = 11, .context = 16};
  all.push_back(architecture_file(model));
  model.family = ModelFamily::kLlama;
  for (const AttentionExtras extras : {AttentionExtras::kNone, AttentionExtras::kQkvBias, AttentionExtras::kQkNorm}) {
    model.extras = extras;
    all.push_back(architecture_file(model));
  }
  model.extras = AttentionExtras::kNone;
  model.rope_scaling = {8, 1, 4, 8};
  model.kv_heads = 1;
  all.push_back(architecture_file(model));
  all.push_back(Bytes::copy_of(std::string_view(
      R"({"model_type":"mistral","num_hidden_layers":1,"hidden_size":4,"num_attention_heads":1,"vocab_size":9,)"
      R"("num_key_value_heads":1,"max_position_embeddings":8,"intermediate_size":4,"rms_norm_eps":1e-6,)"
      R"("sliding_window":null,"attention_dropout":0.1,"another":[1,{"a":null}],)"
      R"("rope_parameters":{"rope_type":"llama3","rope_theta":5e5,"factor":8.0,"low_freq_factor":1.0,)"
      R"("high_freq_factor":4.0,"original_max_position_embeddings":4}})")));
  return all;
}

}  // namespace

const Target pretrained_config{"pretrained_config", take, seeds};

}  // namespace shoal::fuzz
