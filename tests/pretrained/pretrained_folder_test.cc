#include "stages/pretrained/pretrained_folder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/pretrained/folder_writer.h"

namespace shoal {
namespace {

ModelSpec model_of(const Json& json) { return parse_pretrained_config(json.dump())->model; }

// Every parameter of every stage of a split is the one that was written.
void expect_recognised(const PretrainedFolder& folder, bool tied) {
  const std::vector<ParameterSpec> all = parameters_of(split_model(folder.model(), 1)->front());
  std::map<std::string, std::vector<float>> expected;
  for (std::size_t number = 0; const ParameterSpec& parameter : all)
    expected[parameter.name] = recognisable(parameter, number++);
  if (tied) expected["lm_head.weight"] = expected[all.front().name];
  const std::vector<StageSpec> split = *split_model(folder.model(), 2);
  for (const StageSpec& spec : split) {
    std::vector<float> arena(parameter_count(spec), NAN);
    const Status read = folder.read_stage(spec, arena);
    ASSERT_TRUE(read.ok()) << read.error().message;
    for (const ParameterSpec& parameter : parameters_of(spec)) {
      const std::vector<float>& values = expected.at(parameter.name);
      EXPECT_TRUE(
          std::equal(values.begin(), values.end(), arena.begin() + static_cast<std::ptrdiff_t>(parameter.offset)))
          << parameter.name;
    }
  }
}

std::string with_prefix(const std::string& name) { return name == "lm_head.weight" ? name : "transformer." + name; }
std::string but_head(const std::string& name) { return name == "lm_head.weight" ? "" : name; }

Error error_of(const FolderWriter& folder) {
  const auto opened = PretrainedFolder::open(folder.path());
  EXPECT_FALSE(opened.ok());
  return opened.ok() ? make_error(ErrorCode::kTimeout, "") : opened.error();
}
#define EXPECT_SAYS(error, text) EXPECT_NE((error).message.find(text), std::string::npos) << (error).message

TEST(PretrainedFolderTest, ReadsEveryTypeOfFloatWithAndWithoutShards) {
  for (const StoredType type : {StoredType::kF32, StoredType::kBf16, StoredType::kF16}) {
    for (const bool sharded : {false, true}) {
      FolderWriter folder("types");
      folder.config(llama_json());
      const auto tensors = FolderWriter::tensors_of(model_of(llama_json()), type);
      sharded ? folder.sharded(tensors) : folder.single(tensors);
      const auto opened = PretrainedFolder::open(folder.path());
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      expect_recognised(*opened, false);
      EXPECT_TRUE(opened->notes().empty());
    }
  }
}

TEST(PretrainedFolderTest, ReadsGpt2NamesWithAndWithoutTheirPrefix) {
  Json json = gpt2_json();
  json["tie_word_embeddings"] = false;
  for (const bool prefix : {false, true}) {
    FolderWriter folder("prefix");
    folder.config(json);
    folder.single(prefix ? FolderWriter::tensors_of(model_of(json), StoredType::kF32, with_prefix)
                         : FolderWriter::tensors_of(model_of(json), StoredType::kF32));
    const auto opened = PretrainedFolder::open(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    expect_recognised(*opened, false);
  }
}

// Saved of the base class, of the whole model, and with what torch's wrappers put around modules, one in the other.
TEST(PretrainedFolderTest, ReadsNamesAsPeopleSaveThem) {
  Json gpt2 = gpt2_json();
  gpt2["tie_word_embeddings"] = false;
  const auto body = [](std::string name, const std::string& prefix) {
    for (const std::string_view front : {"model.", "transformer."})
      if (name.starts_with(front)) name.erase(0, front.size());
    return name.starts_with("lm_head") ? name : prefix + name;
  };
  const auto at_layers = [](std::string name, const std::string& wrapper) {
    const std::size_t at = name.find("0.");
    return at == name.npos ? name : name.insert(at + 2, wrapper);
  };
  for (const Json& json : {gpt2, llama_json()}) {
    const std::string whole = json["model_type"] == "gpt2" ? "transformer." : "model.";
    const std::vector<std::pair<std::string, std::function<std::string(const std::string&)>>> ways = {
        {"the whole model", [&](const std::string& n) { return body(n, whole); }},
        {"the base class", [&](const std::string& n) { return body(n, ""); }},
        {"compiled", [&](const std::string& n) { return "_orig_mod." + body(n, whole); }},
        {"data parallel", [&](const std::string& n) { return "module." + body(n, whole); }},
        {"both", [&](const std::string& n) { return "module._orig_mod." + body(n, whole); }},
        {"the other way", [&](const std::string& n) { return "_orig_mod.module." + body(n, ""); }},
        {"layers compiled", [&](const std::string& n) { return at_layers(body(n, whole), "_orig_mod."); }},
        {"layers wrapped",
         [&](const std::string& n) { return at_layers(body(n, whole), "_checkpoint_wrapped_module."); }}};
    for (const auto& [way, name] : ways) {
      for (const bool sharded : {false, true}) {
        FolderWriter folder("names");
        folder.config(json);
        const auto tensors = FolderWriter::tensors_of(model_of(json), StoredType::kBf16, name);
        sharded ? folder.sharded(tensors) : folder.single(tensors);
        const auto opened = PretrainedFolder::open(folder.path());
        ASSERT_TRUE(opened.ok()) << way << ": " << opened.error().message;
        expect_recognised(*opened, false);
      }
    }
    FolderWriter headless("headless");
    headless.config(json);
    headless.single(FolderWriter::tensors_of(model_of(json), StoredType::kF32, but_head));
    EXPECT_SAYS(error_of(headless), "AutoModelForCausalLM");
  }
}

TEST(PretrainedFolderTest, AHeadThatIsSavedBesideATiedOneIsTheOneThatIsRead) {
  for (Json json : {gpt2_json(), llama_json()}) {
    json["tie_word_embeddings"] = true;
    FolderWriter folder("own-head");
    folder.config(json);
    folder.single(FolderWriter::tensors_of(model_of(json), StoredType::kF32));
    const auto opened = PretrainedFolder::open(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    expect_recognised(*opened, false);
    EXPECT_NE(opened->notes().back().find("holds a head beside it"), std::string::npos) << opened->notes().back();
  }
}

TEST(PretrainedFolderTest, APointerOfGitLfsIsNamedWithWhatFetchesTheFile) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1000\n";
  for (const std::string name : {"model.safetensors", "model.safetensors.index.json", "config.json"}) {
    FolderWriter folder("pointer");
    folder.config(llama_json());
    if (name != "model.safetensors.index.json")
      folder.single(FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32));
    write_text(folder.file(name), pointer);
    EXPECT_SAYS(error_of(folder), "git lfs pull");
    EXPECT_SAYS(error_of(folder), name);
  }
}

TEST(PretrainedFolderTest, ATiedHeadBecomesACopyOfTheEmbeddingAndIsSaid) {
  FolderWriter folder("tied");
  folder.config(gpt2_json());
  folder.single(FolderWriter::tensors_of(model_of(gpt2_json()), StoredType::kF32, but_head));
  const auto opened = PretrainedFolder::open(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  expect_recognised(*opened, true);
  ASSERT_EQ(opened->notes().size(), 2u);
  EXPECT_NE(opened->notes()[1].find("88 parameters more, 1 MiB"), std::string::npos) << opened->notes()[1];
}

TEST(PretrainedFolderTest, LeavesBuffersOut) {
  FolderWriter folder("buffers");
  folder.config(gpt2_json());
  auto tensors = FolderWriter::tensors_of(model_of(gpt2_json()), StoredType::kF32, but_head);
  tensors.push_back({"h.0.attn.bias", StoredType::kF32, {1, 1, 2, 2}, {1, 0, 1, 1}});
  tensors.push_back({"h.1.attn.masked_bias", StoredType::kF32, {}, {-1e4f}});
  folder.single(tensors);
  EXPECT_TRUE(PretrainedFolder::open(folder.path()).ok());
}

TEST(PretrainedFolderTest, NamesAnUnknownTensorAMissingOneAndOneOfAnotherShape) {
  const auto good = FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32);
  FolderWriter folder("wrong");
  folder.config(llama_json());
  auto more = good;
  more.push_back({"score.weight", StoredType::kF32, {1}, {1}});
  folder.single(more);
  EXPECT_SAYS(error_of(folder), "model.safetensors: tensor \"score.weight\" is unknown");
  auto less = good;
  std::erase_if(less, [](const TensorToWrite& tensor) { return tensor.name == "model.layers.1.mlp.up_proj.weight"; });
  folder.single(less);
  EXPECT_EQ(error_of(folder).code, ErrorCode::kMissing);
  EXPECT_SAYS(error_of(folder), "\"model.layers.1.mlp.up_proj.weight\" is missing");
  auto other = good;
  other[0].shape = {8, 11};
  folder.single(other);
  EXPECT_SAYS(error_of(folder), "\"model.embed_tokens.weight\" is (8, 11), and config.json says (11, 8)");
  auto twice = FolderWriter::tensors_of(model_of(gpt2_json()), StoredType::kF32);
  twice.push_back({"transformer.wte.weight", StoredType::kF32, {11, 8}, std::vector<float>(88)});
  folder.config(gpt2_json());
  folder.single(twice);
  EXPECT_SAYS(error_of(folder), "twice");
}

TEST(PretrainedFolderTest, NamesAValueThatIsNotFinite) {
  for (const StoredType type : {StoredType::kF32, StoredType::kBf16, StoredType::kF16}) {
    FolderWriter folder("finite");
    folder.config(llama_json());
    auto tensors = FolderWriter::tensors_of(model_of(llama_json()), type);
    tensors[3].values[5] = INFINITY;
    folder.single(tensors);
    const auto opened = PretrainedFolder::open(folder.path());
    ASSERT_TRUE(opened.ok()) << "values are judged when they are read";
    const StageSpec spec = split_model(opened->model(), 1)->front();
    std::vector<float> arena(parameter_count(spec));
    const Status read = opened->read_stage(spec, arena);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.code(), ErrorCode::kNonFinite);
    EXPECT_SAYS(read.error(), "model.safetensors: tensor \"" + tensors[3].name + "\"");
  }
}

TEST(PretrainedFolderTest, RefusesWeightsThatAreNoFloats) {
  FolderWriter folder("integers");
  folder.config(llama_json());
  auto tensors = FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32);
  tensors[0].type = StoredType::kI32;
  folder.single(tensors);
  const auto opened = PretrainedFolder::open(folder.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.code(), ErrorCode::kUnsupported);
  EXPECT_SAYS(opened.error(), "\"model.embed_tokens.weight\" has dtype I32");
}

TEST(PretrainedFolderTest, RefusesATruncatedFileAtEveryLengthAndOneThatShrinksLater) {
  FolderWriter folder("truncated");
  folder.config(llama_json());
  folder.single(FolderWriter::tensors_of(model_of(llama_json()), StoredType::kBf16));
  const auto path = folder.file("model.safetensors");
  const auto opened = PretrainedFolder::open(folder.path());
  ASSERT_TRUE(opened.ok());
  for (std::uintmax_t size = std::filesystem::file_size(path); size > 0;) {
    size -= std::min<std::uintmax_t>(size, size > 200 ? 97 : 1);
    std::filesystem::resize_file(path, size);
    EXPECT_SAYS(error_of(folder), "model.safetensors: ");
  }
  const StageSpec spec = split_model(opened->model(), 1)->front();
  std::vector<float> arena(parameter_count(spec));
  const Status read = opened->read_stage(spec, arena);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), ErrorCode::kCorrupt);
}

TEST(PretrainedFolderTest, RefusesAFileThatWasWrittenAnewSinceItWasOpened) {
  FolderWriter folder("anew");
  folder.config(llama_json());
  folder.single(FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32));
  const auto opened = PretrainedFolder::open(folder.path());
  ASSERT_TRUE(opened.ok());
  const StageSpec spec = split_model(opened->model(), 1)->front();
  std::vector<float> arena(parameter_count(spec));
  EXPECT_TRUE(opened->read_stage(spec, arena).ok());
  const auto path = folder.file("model.safetensors");
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  const Status read = opened->read_stage(spec, arena);
  ASSERT_FALSE(read.ok());
  EXPECT_SAYS(read.error(), "has changed since it was opened. HINT: ");
}

TEST(PretrainedFolderTest, NamesWhatTheFolderLacks) {
  FolderWriter folder("lacks");
  EXPECT_EQ(error_of(folder).code, ErrorCode::kMissing);
  EXPECT_SAYS(error_of(folder), "holds no config.json");
  folder.config(llama_json());
  EXPECT_SAYS(error_of(folder), "neither model.safetensors nor model.safetensors.index.json");
  write_text(folder.file("pytorch_model.bin"), "pickle");
  EXPECT_SAYS(error_of(folder), "pytorch_model.bin is not read");
  folder.sharded(FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32));
  ASSERT_TRUE(PretrainedFolder::open(folder.path()).ok());
  std::filesystem::remove(folder.file(FolderWriter::shard(1)));
  EXPECT_EQ(error_of(folder).code, ErrorCode::kMissing);
  EXPECT_SAYS(error_of(folder), FolderWriter::shard(1));
}

TEST(PretrainedFolderTest, TheIndexAndTheFilesSayTheSame) {
  FolderWriter folder("index");
  folder.config(llama_json());
  const auto tensors = FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32);
  Json map;
  for (const TensorToWrite& tensor : tensors) map[tensor.name] = "all.safetensors";
  write_tensors(folder.file("all.safetensors"), tensors);
  folder.index(map);
  ASSERT_TRUE(PretrainedFolder::open(folder.path()).ok());
  Json more = map, less = map;
  more["model.extra.weight"] = "all.safetensors";
  folder.index(more);
  EXPECT_SAYS(error_of(folder), "all.safetensors: tensor \"model.extra.weight\" is missing");
  less.erase("lm_head.weight");
  folder.index(less);
  EXPECT_SAYS(error_of(folder), "\"lm_head.weight\" is not where model.safetensors.index.json says");
}

TEST(PretrainedFolderTest, AnIndexNamesFilesOfItsOwnFolder) {
  const auto index = [](const Json& map) { return parse_weight_index(Json{{"weight_map", map}}.dump()); };
  EXPECT_TRUE(index({{"a", "model.safetensors"}}).ok());
  for (const char* name : {"../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "a\\b.safetensors",
                           "..", "", "model.bin", ".safetensors", "a\n.safetensors"}) {
    ASSERT_FALSE(index({{"a", name}}).ok()) << name;
    EXPECT_EQ(index({{"a", name}}).code(), ErrorCode::kMalformed);
  }
  EXPECT_FALSE(index({{"a", 1}}).ok());
  EXPECT_FALSE(index(Json::object()).ok());
  for (const char* text : {"", "[]", "{}", "{\"weight_map\": []}", "{\"weight_map\": {\"a\": \"b.safetensors\"}"})
    EXPECT_FALSE(parse_weight_index(text).ok()) << text;
}

TEST(PretrainedFolderTest, PiecesOfAStageAreThoseOfTheWhole) {
  for (const StoredType type : {StoredType::kF32, StoredType::kBf16}) {
    FolderWriter folder("pieces");
    folder.config(llama_json());
    folder.sharded(FolderWriter::tensors_of(model_of(llama_json()), type));
    const auto opened = PretrainedFolder::open(folder.path());
    ASSERT_TRUE(opened.ok());
    const StageSpec spec = split_model(opened->model(), 2)->back();
    std::vector<float> whole(parameter_count(spec)), pieces(whole.size());
    ASSERT_TRUE(opened->read_stage(spec, whole).ok());
    for (std::size_t size : {1u, 7u, 100u}) {
      std::ranges::fill(pieces, NAN);
      for (std::size_t at = 0; at < pieces.size(); at += size)
        ASSERT_TRUE(opened->read(spec, at, std::span(pieces).subspan(at, std::min(size, pieces.size() - at))).ok());
      EXPECT_EQ(pieces, whole) << size;
    }
  }
}

TEST(PretrainedFolderTest, AStageOfAnotherModelIsRefused) {
  FolderWriter folder("other");
  folder.config(llama_json());
  folder.single(FolderWriter::tensors_of(model_of(llama_json()), StoredType::kF32));
  ModelSpec model = model_of(llama_json());
  model.positions = 4;
  model.seed = 9;
  const StageSpec shorter = split_model(model, 1)->front();
  std::vector<float> arena(parameter_count(shorter));
  const auto opened = PretrainedFolder::open(folder.path());
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened->read_stage(shorter, arena).ok()) << "sequences may be shorter";
  model.rope_theta = 20000;
  const Status read = opened->read_stage(split_model(model, 1)->front(), arena);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), ErrorCode::kInput);
}

}  // namespace
}  // namespace shoal
