#pragma once
// A run's state images as a saved model: the same files as `solo --save`.
#include <cstdint>
#include <map>
#include <string>

#include "common/bytes.h"
#include "runtime/config/config.h"

namespace shoal {

// --save with an executor that holds no model.
Error nothing_to_save();
// Whether a model can be written into the folder, which is made: at the start, and not first when the training is over.
// ERRORS: kOutput.
Status probe_save_folder(const std::string& folder);

// Writes the anchors. Blocking file I/O. ERRORS: kMissing (a stage without an image), kMalformed (an image of another
// stage or model), kIo.
Status save_states(const std::string& folder, const RunConfig& config, const std::map<std::uint16_t, Bytes>& images);

}  // namespace shoal
