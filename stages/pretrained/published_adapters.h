#pragma once
// Adapters written as Python's peft reads them (PeftModel.from_pretrained): adapter_model.safetensors and
// adapter_config.json. Thread: any; blocking file I/O.
#include <string>
#include <vector>

#include "common/result.h"
#include "stages/stage_file.h"

namespace shoal {

inline constexpr char kAdapterWeightsName[] = "adapter_model.safetensors", kAdapterConfigName[] = "adapter_config.json";

// `stages`: all of one model with adapters. `base`: the folder or name of the base, as the reader of the files finds
// it. The folder is there. ERRORS: kIo.
Status publish_adapters(const std::string& folder, const std::vector<LoadedStage>& stages, const std::string& base);

}  // namespace shoal
