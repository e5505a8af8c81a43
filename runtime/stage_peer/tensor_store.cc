#include "runtime/stage_peer/tensor_store.h"

namespace shoal {

void TensorStore::await(EntrySerial serial, const MicrobatchId& microbatch, const InboundFrames& input) {
  auto tensors = std::make_shared<EntryTensors>();
  tensors->microbatch = microbatch;
  entries_[serial] = std::move(tensors);
  inputs_[input] = serial;
}

std::optional<EntrySerial> TensorStore::arrived(const InboundFrames& input) {
  const auto it = inputs_.find(input);
  if (it == inputs_.end()) return std::nullopt;
  const EntrySerial serial = it->second;
  inputs_.erase(it);
  return serial;
}

void TensorStore::forget_link(const PeerId& peer) {
  std::erase_if(inputs_, [&](const auto& item) { return item.first.peer == peer; });
}

std::shared_ptr<EntryTensors> TensorStore::find(EntrySerial serial) const {
  const auto it = entries_.find(serial);
  return it == entries_.end() ? nullptr : it->second;
}

}  // namespace shoal
