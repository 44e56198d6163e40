// The products of a right-hand side: fields of a spectrum at points, products, back to spectra. One set of
// buffers and plans for all evaluations of a solver.
#pragma once

#include <functional>
#include <optional>

#include "flow/les/slabs.hpp"
#include "lockstep/fft.hpp"

namespace lockstep::flow {

/// A kernel with its domain and arguments.
struct Launch {
  Kernel kernel;
  Shape domain;
  std::vector<Argument> arguments;
  void run(const Device& device) const { device.launch_with(kernel, domain, arguments, {}); }
};

/// Numbers that kernels take by name.
Arguments numbers_of(const Model& model, const Modes& modes, int64_t points);
/// The form of the kernels of a model.
KernelForm form_of(const Model& model, bool adaptive);

/// Calls `work` with f32() or f64().
template <class F>
auto with_precision(Storage storage, F work) {
  return storage == Storage::f64 ? work(f64()) : work(f32());
}

/// In one of two ways: by whole transforms of all fields and products, or, where is_fused() says so, by the two
/// kernels of fused.hpp.
class Evaluation {
 public:
  /// `variant` of `flow.step`; empty: the fastest. With several ranks each computes a part, and calls of products() and
  /// measure() are collective; what their columns' launches write is gathered by slabs(). Throws GroupError, on every
  /// rank, where the kernels are not fused.
  Evaluation(const Device& device, const Model& model, const KernelForm& form, Storage storage,
             int64_t members, std::string_view variant, const parallel::Group& group = {});

  /// Derives the fields that `products` takes from a state; later states leave them behind themselves.
  Launch derive(const Buffer& w) const;
  /// The products' spectra of the state w, which the last derive or advance came from. `measuring`: the speeds at
  /// points too.
  void products(const Buffer& w, bool measuring = false) const;
  /// The speeds alone.
  void measure(const Buffer& w) const;
  /// A stage's update and the right-hand side alone, which take the products. `arguments`: states, clock.
  Launch advance(StageKind kind, const Arguments& arguments) const;
  Launch right_hand_side(const Arguments& arguments) const;

  /// Largest |u| and |v|, with a local dynamic closure the largest eddy viscosity too: (members, parts, 2 or 3).
  const Buffer& speeds() const { return speeds_; }
  Shape mode_domain() const { return {members_, modes_.rows(), modes_.columns()}; }
  const Arguments& numbers() const { return numbers_; }
  const KernelForm& form() const { return form_; }
  const std::optional<Slabs>& slabs() const { return slabs_; }
  std::vector<Kernel> kernels() const;

 private:
  /// Buffers and plans of whole transforms.
  struct Whole {
    Fft inverse, forward;
    Buffer fields, products;  // at points
    Kernel products_kernel, speeds_kernel;
  };
  struct Fused {
    FusedShape shape;
    Buffer roots_x, roots_y, bent;  // bent: psi_yy, where psi and psi_y are paired
    Kernel rows, rows_measured;
  };
  /// Buffers and plans of a dynamic closure.
  struct Dynamic {
    Fft forward, inverse;
    Buffer germano, germano_spectra, filtered_spectra, filtered, pair;
    Buffer sums, coefficient;  // means over the box
    Buffer eddy;               // local means
    Kernel products, filtering, contract, partial_sums, coefficient_kernel, viscosity;
  };
  void make_whole();
  void make_fused(std::string_view variant, const parallel::Group& group);
  void make_dynamic();
  void run_whole(const Buffer& w, bool measuring, bool measuring_alone) const;
  void run_dynamic(const Buffer& w) const;
  void measure_whole() const;
  void launch(const Kernel& kernel, const Shape& domain, Arguments arguments) const;
  Launch update(const Kernel& kernel, Arguments arguments) const;
  /// Domain of the kernels over modes.
  Shape update_domain() const;
  Fft plan(FftKind kind, int64_t fields) const;
  Buffer spectra(int64_t fields) const;
  Buffer points(int64_t fields) const;

  Device device_;
  Modes modes_;
  KernelForm form_;
  Storage storage_;
  int64_t members_;
  Arguments numbers_;
  Buffer fields_, products_, speeds_;  // what derive and advance write, and what they read
  Kernel derive_kernel_;
  mutable std::optional<Kernel> right_hand_side_;  // traced for its first launch
  std::optional<Whole> whole_;
  std::optional<Fused> fused_;
  std::optional<Slabs> slabs_;
  std::optional<Dynamic> dynamic_;
};

}  // namespace lockstep::flow
