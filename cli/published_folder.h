#pragma once
// What stands beside the weights in a folder of transformers that a command writes: its tokenizer, and which files are
// taken away again when it fails. Thread: any; blocking file I/O.
#include <string>
#include <vector>

#include "common/crypto/hash.h"
#include "common/os/new_files.h"
#include "common/result.h"
#include "stages/stage_spec.h"
#include "text/text_ends.h"

namespace shoal {

// All files of it but the adapters', and the folder.
void expect_published_model(NewFiles& made, const std::string& folder, const std::vector<StageSpec>& specs);

// `named`, or the one that lies beside the model; empty: neither.
std::string tokenizer_beside(const std::string& model, const std::string& named);

// The tokenizer at `path`, and what transformers has to know of it; none: nothing is written. Returns the ends of a
// text as far as it and `said` tell them. `made_ids`: of the one that made the run's ids, or none. ERRORS: kInput
// (another one, or ids that the model has not), Tokenizer::load's, kIo.
Result<TextEnds> write_tokenizer(const std::string& folder, const std::string& path, const TextEnds& said,
                                 const ModelSpec& model, const std::vector<Digest>& made_ids);

}  // namespace shoal
