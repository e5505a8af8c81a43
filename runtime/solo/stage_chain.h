#pragma once
// All stages of a model in one process, through the same StageExecutor as the swarm's: what `solo` trains and `eval`
// judges. Owns the executors. Thread: one (they compute on it).
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "runtime/config/config.h"
#include "runtime/data/samples.h"
#include "runtime/solo/coded_edges.h"
#include "stages/executor.h"

namespace shoal {

struct MeanLoss {
  double loss_sum = 0;  // nats
  std::uint64_t targets = 0;
  double mean() const { return targets == 0 ? 0 : loss_sum / static_cast<double>(targets); }
};

class StageChain {
 public:
  // Split as the run says, with the numbers that every replica of the swarm starts from: those of [model] from, else
  // drawn; adapters are drawn, and that folder is their base. `note` is told what is done otherwise than that folder
  // says. ERRORS: kInput (split), kUnsupported ([model] from without a model to give it to), kInput (adapters without
  // it), PretrainedFolder's, the factory's.
  static Result<StageChain> make(const RunConfig& config, const ExecutorFactory& factory,
                                 const std::function<void(const std::string&)>& note = {});
  // From a saved model, whose digests are checked first; into the anchors, which is what evaluate() and texts read.
  // `base`: the folder of the model that saved adapters stand beside. ERRORS: check_saved_model's, load_model's, the
  // factory's, BaseModel's; kInput (a base for what are no adapters).
  static Result<StageChain> load(const std::string& folder, const ExecutorFactory& factory,
                                 const std::string& base = "");

  // The same, or of a folder of transformers: all of it in one stage. ERRORS: load()'s, or PretrainedFolder's.
  static Result<StageChain> open(const std::string& folder, const ExecutorFactory& factory,
                                 const std::string& base = "");

  // Forward through all stages, backward back, settled at once; the gradient is in the open window of every stage.
  // ERRORS: the executors'.
  Result<MeanLoss> train(const MicrobatchId& microbatch, const HostTensor& tokens);
  // The same over frames, as peers send them; by `sample` the edges know their bases.
  Result<MeanLoss> train(const MicrobatchId& microbatch, const HostTensor& tokens, SampleId sample, CodedEdges& edges);
  // Every stage steps with its own clipping norm and closes its window. REQUIRES: step.targets > 0. ERRORS: kNonFinite.
  Status step(const InnerStep& step);
  // The current parameters become the anchor, which evaluate() reads.
  void publish();
  Result<MeanLoss> evaluate(const HostTensor& tokens);
  // Mean over the validation samples, at most `limit` of them (0 = all). `go_on` is asked in front of each, with those
  // done and all; kInterrupted when it says no.
  Result<MeanLoss> validate(const Samples& samples, std::uint64_t limit,
                            const std::function<bool(std::uint64_t done, std::uint64_t of)>& go_on = {});
  // Anchors to safetensors, one file a stage, and what belongs to them (saved_model.h). ERRORS: kUnsupported (the
  // executor has no model's parameters), kIo.
  Status save(const std::string& folder, const RunConfig& config);

  const std::vector<std::unique_ptr<StageExecutor>>& stages() const { return stages_; }

 private:
  explicit StageChain(std::vector<std::unique_ptr<StageExecutor>> stages) : stages_(std::move(stages)) {}
  std::vector<std::unique_ptr<StageExecutor>> stages_;
  EntrySerial next_entry_ = 1;
};

}  // namespace shoal
