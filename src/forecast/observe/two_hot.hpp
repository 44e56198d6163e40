// The two-hot heads of the online ensemble: predictions, the cross-entropy of the loss that came, and gradients by states
// and head. A sampled class passes its gradient to its probability (straight through).
#pragma once

#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

/// Members, hidden, categoricals of classes, bins. The head is P (C K, D), P_b (C K), V (N, D + C K), V_b (N), one after
/// the other.
struct TwoHotShape {
  int64_t members = 1, hidden = 1, categoricals = 1, classes = 1, bins = 2;
  int64_t states() const { return categoricals * classes; }
  int64_t width() const { return hidden + states(); }
  int64_t head_size() const { return states() * (hidden + 1) + bins * (width() + 1); }
};

/// Draws of observation t, categorical c and member m stand at (t C + c, m + kLearningDraws) of the counter.
inline constexpr uint32_t kLearningDraws = 1u << 16;

class TwoHotHead {
 public:
  TwoHotHead() = default;
  /// head and d_head (head_size).
  TwoHotHead(const Device& device, const TwoHotShape& shape, const Buffer& head, const Buffer& d_head,
             uint64_t seed);
  /// Of h (M, D), loss (1) and observation (1, i32): predictions to column kPrediction of found (M, …), the cross-entropy's
  /// derivatives to d_h (M, D) and d_head. Launches only.
  void launch(const Buffer& h, const Buffer& loss, const Buffer& observation, const Buffer& found,
              const Buffer& d_h) const;
  std::vector<Kernel> kernels() const;

 private:
  template <class T>
  void launch_as(const Buffer& h, const Buffer& loss, const Buffer& observation, const Buffer& found,
                 const Buffer& d_h) const;

  Device device_;
  TwoHotShape shape_;
  uint32_t key_ = 0;
  Kernel cross_entropy_;
  Buffer p_, p_bias_, v_, v_bias_, d_p_, d_p_bias_, d_v_, d_v_bias_;
  // (M, C K), (M, C K), (M, D + C K), (M, N), (M, N), (M, C K), (M, C K)
  Buffer logits_, probability_, c_, bins_, slope_, d_s_, d_logits_;
};

}  // namespace lockstep::forecast
