// The two-hot heads of the online ensemble: predictions, the cross-entropy of the loss that came, and gradients by states
// and head. A sampled class passes its gradient to its probability (straight through).
#pragma once

#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/forecast/observe.hpp"

namespace lockstep::forecast {

/// Members, hidden, categoricals of classes, bins. The head is P (C K, D), P_b (C K), V (N, D + C K), V_b (N), one after
/// the other.
struct TwoHotShape {
  int64_t members = 1, hidden = 1, categoricals = 1, classes = 1, bins = 2;
  int64_t states() const { return categoricals * classes; }
  int64_t width() const { return hidden + states(); }
  int64_t head_size() const { return states() * (hidden + 1) + bins * (width() + 1); }
  int64_t posterior_size() const { return states() * (hidden + 2); }
};

/// Draws of observation t, categorical c and member m are at (t C + c, m + kLearningDraws) of the counter, those of the
/// posterior at (t C + c, m + kPosteriorDraws).
inline constexpr uint32_t kLearningDraws = 1u << 16, kPosteriorDraws = 2u << 16;

class TwoHotHead {
 public:
  TwoHotHead() = default;
  /// head and d_head (head_size, and posterior_size where there is one).
  TwoHotHead(const Device& device, const TwoHotShape& shape, const Buffer& head, const Buffer& d_head,
             uint64_t seed, const PosteriorTerm& posterior);
  /// Of h (M, D), loss (1) and observation (1, i32): predictions to column kPrediction of found (M, …), the
  /// cross-entropy's derivatives to d_h (M, D) and d_head, the KL divergence to kDivergence where there is a posterior.
  /// Launches only.
  void launch(const Buffer& h, const Buffer& loss, const Buffer& observation, const Buffer& found,
              const Buffer& d_h) const;
  std::vector<Kernel> kernels() const;

 private:
  template <class T>
  void launch_as(const Buffer& h, const Buffer& loss, const Buffer& observation, const Buffer& found,
                 const Buffer& d_h) const;
  template <class T>
  void launch_bins(const Buffer& h, const Buffer& logits, const Buffer& probability, uint32_t draws,
                   const Buffer& loss, const Buffer& observation, const Buffer& found) const;
  template <class T>
  void launch_prior(const Buffer& h, const Buffer& loss, const Buffer& observation,
                    const Buffer& found) const;
  template <class T>
  void launch_posterior(const Buffer& h, const Buffer& loss, const Buffer& observation) const;

  Device device_;
  TwoHotShape shape_;
  uint32_t key_ = 0;
  PosteriorTerm posterior_;
  Kernel cross_entropy_;
  Buffer p_, p_bias_, v_, v_bias_, d_p_, d_p_bias_, d_v_, d_v_bias_;
  // (M, C K), (M, C K), (M, D + C K), (M, N), (M, N), (M, C K), (M, C K)
  Buffer logits_, probability_, c_, bins_, slope_, d_s_, d_logits_;
  // Of the posterior: its weights, [h; symlog L] (M, D + 1), (M, C K) four times, (M, kFoundCount)
  Buffer q_, q_bias_, d_q_, d_q_bias_, evidence_, q_logits_, q_probability_, d_q_s_, d_q_logits_, q_found_;
};

}  // namespace lockstep::forecast
