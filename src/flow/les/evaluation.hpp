// The products of a right-hand side: fields of a spectrum at points, products, back to spectra. One set of
// buffers and plans for all evaluations of a solver.
#pragma once

#include <functional>
#include <optional>

#include "flow/les/kernels.hpp"
#include "lockstep/fft.hpp"

namespace lockstep::flow {

/// A kernel with its domain and arguments.
struct Launch {
  Kernel kernel;
  Extent domain;
  std::vector<Argument> arguments;
  void run(const Device& device) const { device.launch_with(kernel, domain, arguments, {}); }
};

/// Numbers that kernels take by name.
Arguments numbers_of(const Model& model, const Modes& modes, int64_t points);
/// What shapes the kernels of a model.
KernelForm form_of(const Model& model, bool adaptive);

/// Calls `work` with f32() or f64().
template <class F>
auto with_precision(Storage storage, F work) {
  return storage == Storage::f64 ? work(f64()) : work(f32());
}

class Evaluation {
 public:
  Evaluation(const Device& device, const Model& model, const KernelForm& form, Storage storage,
             int64_t members);

  /// Fields' spectra out of a state; later states write them themselves.
  Launch derive(const Buffer& w) const;
  /// Fields at points.
  void to_points() const;
  /// Products, and their spectra. `w`: the state that the fields came from.
  void products(const Buffer& w) const;

  const Buffer& field_spectra() const { return field_spectra_; }
  const Buffer& fields() const { return fields_; }
  const Buffer& product_spectra() const { return product_spectra_; }
  Extent mode_domain() const { return {members_, modes_.rows(), modes_.columns()}; }
  const Arguments& numbers() const { return numbers_; }
  const KernelForm& form() const { return form_; }
  std::vector<Kernel> kernels() const;

 private:
  /// Buffers and plans of a dynamic closure.
  struct Dynamic {
    Fft forward, inverse, pair_forward, pair_inverse;
    Buffer germano, germano_spectra, filtered_spectra, filtered, pair, pair_spectra, pair_filtered, sums,
        coefficient;
    Kernel products, filtering, contract, filter_pair, partial_sums, coefficient_kernel;
  };
  void make_dynamic();
  void run_dynamic(const Buffer& w) const;
  void launch(const Kernel& kernel, const Extent& domain, Arguments arguments) const;
  Fft plan(FftKind kind, int64_t fields) const;
  Buffer spectra(int64_t fields) const;
  Buffer points(int64_t fields) const;

  Device device_;
  Modes modes_;
  KernelForm form_;
  Storage storage_;
  int64_t members_;
  Arguments numbers_;
  Fft inverse_, forward_;
  Buffer field_spectra_, fields_, products_, product_spectra_;
  Kernel derive_kernel_, product_kernel_;
  std::optional<Dynamic> dynamic_;
};

}  // namespace lockstep::flow
