#pragma once
// A run's state images as a saved model: the same files as `solo --save`.
#include <cstdint>
#include <functional>
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
// `stage_saved` is told how many stages of how many are on the disk, after each.
Status save_states(const std::string& folder, const RunConfig& config, const std::map<std::uint16_t, Bytes>& images,
                   const std::function<void(std::uint64_t done, std::uint64_t of)>& stage_saved);

// What a run remembers of its saved model, in its own folder: after its end nobody could save it again.
// ERRORS: kIo, kMissing (`folder` holds no saved model).
Status note_saved(const std::string& run_folder, const std::string& folder);
// Why `folder` does not hold, whole and unchanged, the model that the run saved. Empty: it does. Blocking file I/O.
std::string not_saved_before(const std::string& run_folder, const std::string& folder);

}  // namespace shoal
