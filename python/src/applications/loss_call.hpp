// Losses whose arrays are addresses in memory of others, for PyTorch and XLA: bound once, run on other memory at each
// call, without waiting for the device.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"

namespace lockstep::python {

class LossCall {
 public:
  /// An array that is given at every call: a level (-1, 0, +1) of a field, and whether its gradient is requested.
  struct Slot {
    std::string field;
    int level;
    Shape shape;
    bool gradient;
  };
  /// Parts that stay from call to call. A mask has the mesh's shape.
  struct Form {
    Storage storage = Storage::f32;
    std::vector<Slot> slots;
    double seed = 1;
    pde::LossOptions options;
  };
  struct Addresses {
    std::vector<uint64_t> fields, gradients;  // by slots; gradients that are not requested are 0
    uint64_t mask = 0, value = 0;             // mask: 0 where there is none
    Storage value_storage = Storage::f32;
    std::map<std::string, double> parameters;
    /// Requests the derivatives by all parameters (without the seed), which waits for the device.
    std::map<std::string, double>* by_parameter = nullptr;
    std::optional<NativeStream> stream;  // CUDA: what the call is ordered with
  };

  LossCall(pde::Loss loss, Device device, Form form)
      : loss_(std::move(loss)), device_(std::move(device)), form_(std::move(form)) {}
  LossCall(const LossCall&) = delete;

  const Form& form() const { return form_; }
  /// Launches everything; on CUDA the stream's later work begins after it. Several threads may call.
  void run(const Addresses& at);

 private:
  Buffer wrapped(Storage storage, const Shape& shape, uint64_t address) const;
  void launch(const Addresses& at);
  pde::Inputs inputs_at(const Addresses& at) const;

  const pde::Loss loss_;
  const Device device_;
  const Form form_;
  std::mutex mutex_;                                    // calls share scratch memory
  std::array<std::optional<pde::BoundLoss>, 2> bound_;  // [whether all arrays begin at 16 bytes]
};

/// Memory of others that the caller orders and keeps.
Buffer wrap_ordered(const Device& device, Storage storage, const Shape& shape, uint64_t address);

}  // namespace lockstep::python
