#pragma once
// The folder that --save writes, but for its stages' files (stages/stage_file.h): the run that made the model, and the
// digests of all files, by which damage is found before a figure is made of it. Thread: any; blocking file I/O.
#include <string>
#include <vector>

#include "common/os/new_files.h"
#include "common/result.h"
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

inline constexpr char kSavedConfigName[] = "run.toml";
inline constexpr char kSavedTokenizerName[] = "tokenizer.json";  // where the run names one
inline constexpr char kSavedSumsName[] = "B2SUMS";  // as `b2sum -l 256 *` writes and `b2sum --check` reads it
inline constexpr std::size_t kSavedSumsBytesMax = 1u << 20;

// What is about to be saved, so that half of a model goes away again.
void expect_saved_model(NewFiles& made, const std::string& folder, const std::vector<StageSpec>& specs);
// Once the files of all stages are there: index, config.json (where has_architecture()), run.toml, the tokenizer and,
// last, the digests. A tokenizer that cannot be read is left out with a warning. ERRORS: kTooLarge (the manifest), kIo.
Status finish_saved_model(const std::string& folder, const RunConfig& config, const std::vector<StageSpec>& specs);

// Whether every file is as it was saved. A folder without digests was written by an older program and passes. ERRORS:
// kCorrupt (a file that is another; digests that cannot be read), kMissing (a file), kIo.
Status check_saved_model(const std::string& folder);

// The run that a saved model belongs to. ERRORS: kMissing, kMalformed, kIo.
Result<RunConfig> load_saved_config(const std::string& folder);

}  // namespace shoal
