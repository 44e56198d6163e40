#include "flow/les/evaluation.hpp"

#include <cmath>

namespace lockstep::flow {

Arguments numbers_of(const Model& model, const Modes& modes, int64_t points) {
  const BoxGrid& grid = model.grid;
  const double width = std::sqrt(grid.dx() * grid.dy());
  const int p = width_power(model.closure);
  double power = std::pow(width, p);
  const double test_power = std::pow(2 * width, p);
  const double unit = 2 * kPi / std::max(grid.lx, grid.ly);
  if (!is_dynamic(model.closure)) power *= std::pow(constant_of(model), p);
  const Forcing& f = model.forcing;
  Arguments a;
  a.set("unit_x", 2 * kPi / grid.lx).set("unit_y", 2 * kPi / grid.ly).set("kept_y", modes.kept_y);
  a.set("viscosity", model.viscosity).set("drag", model.drag).set("beta", model.beta);
  a.set("hyper", model.hyper_viscosity).set("hypo", model.hypo_viscosity);
  a.set("scale", 1 / double(points)).set("dx", grid.dx()).set("dy", grid.dy());
  a.set("width_power", power).set("test_power", test_power);
  a.set("test_width_2_over_24", 4 * width * width / 24);
  const double k = 2 * kPi / grid.ly * std::round(f.wavenumber);
  a.set("kolmogorov", f.amount * k / 2).set("kolmogorov_mode", int64_t(std::llround(f.wavenumber)));
  double on_ring = 0;
  for (int64_t iy = -modes.kept_y; iy <= modes.kept_y; ++iy)
    for (int64_t ix = 0; ix <= modes.kept_x; ++ix) {
      const double at = std::hypot(2 * kPi / grid.lx * double(ix), 2 * kPi / grid.ly * double(iy)) / unit;
      if (std::abs(at - f.wavenumber) <= 0.5) on_ring += ix > 0 ? 2 : 1;
    }
  a.set("over_unit", 1 / unit).set("ring", f.wavenumber);
  a.set("kick", on_ring > 0 ? std::sqrt(2 * std::max(f.amount, 0.0) / on_ring) : 0.0);
  return a;
}

KernelForm form_of(const Model& model, bool adaptive) {
  KernelForm form;
  form.terms = terms_of(model);
  form.kolmogorov = model.forcing.kind == ForcingKind::kolmogorov;
  form.stochastic = model.forcing.kind == ForcingKind::stochastic;
  form.filter = model.dealias == Dealias::filter;
  form.adaptive = adaptive;
  form.beta = model.beta != 0;
  form.hyper = model.hyper_viscosity > 0;
  form.hypo = model.hypo_viscosity > 0;
  form.hyper_power = model.hyper_power;
  form.hypo_power = model.hypo_power;
  return form;
}

Evaluation::Evaluation(const Device& device, const Model& model, const KernelForm& form, Storage storage,
                       int64_t members)
    : device_(device),
      modes_(modes_of(model)),
      form_(form),
      storage_(storage),
      members_(members),
      numbers_(numbers_of(model, modes_, modes_.points_x * modes_.points_y)) {
  const auto fields = int64_t(form.terms.fields.size()), products = int64_t(form.terms.products.size());
  inverse_ = plan(FftKind::c2r, fields);
  forward_ = plan(FftKind::r2c, products);
  field_spectra_ = spectra(fields);
  fields_ = points(fields);
  products_ = points(products);
  product_spectra_ = spectra(products);
  with_precision(storage, [&]<class T>(T) {
    derive_kernel_ = LesKernels<T>::derive(form);
    product_kernel_ = LesKernels<T>::products(form);
  });
  if (is_dynamic(form.terms.closure)) make_dynamic();
}

Fft Evaluation::plan(FftKind kind, int64_t fields) const {
  FftOptions options;
  options.kind = kind;
  options.type = storage_;
  options.lengths = {modes_.points_y, modes_.points_x};
  options.batch = fields * members_;
  options.kept = {modes_.kept_y, modes_.kept_x};
  return Fft(device_, options);
}
Buffer Evaluation::spectra(int64_t fields) const {
  return device_.allocate(storage_, {fields * members_, modes_.rows(), modes_.columns(), 2});
}
Buffer Evaluation::points(int64_t fields) const {
  return device_.allocate(storage_, {fields * members_, modes_.points_y, modes_.points_x});
}

void Evaluation::make_dynamic() {
  const Terms& terms = form_.terms;
  const auto filtered = 4 + int64_t(germano_fields(terms).size());
  const bool local = terms.averaging == Averaging::local;
  const int64_t chunks = chunks_of(modes_.points_x * modes_.points_y);
  Dynamic& d = dynamic_.emplace();
  d.forward = plan(FftKind::r2c, 4);
  d.inverse = plan(FftKind::c2r, filtered);
  d.germano = points(4);
  d.germano_spectra = spectra(4);
  d.filtered_spectra = spectra(filtered);
  d.filtered = points(filtered);
  d.pair = points(2);
  if (local) {
    d.pair_forward = plan(FftKind::r2c, 2);
    d.pair_inverse = plan(FftKind::c2r, 2);
    d.pair_spectra = spectra(2);
    d.pair_filtered = spectra(2);
  } else {
    d.sums = device_.allocate(storage_, {members_, chunks, 2});
    d.coefficient = device_.allocate(storage_, {members_});
  }
  with_precision(storage_, [&]<class T>(T) {
    using K = DynamicKernels<T>;
    d.products = K::products(terms);
    d.filtering = K::filtered(terms);
    d.contract = K::contract(terms);
    d.filter_pair = K::filter_pair();
    d.partial_sums = K::partial_sums();
    d.coefficient_kernel = K::coefficient();
  });
}

void Evaluation::launch(const Kernel& kernel, const Extent& domain, Arguments arguments) const {
  device_.launch_with(kernel, domain, arguments.bind_known(kernel), {});
}

Launch Evaluation::derive(const Buffer& w) const {
  Arguments a = numbers_;
  a.set("w", w).set("fields", field_spectra_);
  return {derive_kernel_, mode_domain(), a.bind_known(derive_kernel_)};
}

void Evaluation::to_points() const { inverse_.execute(field_spectra_, fields_); }

void Evaluation::run_dynamic(const Buffer& w) const {
  const Dynamic& d = *dynamic_;
  const Extent at_points{members_, modes_.points_y, modes_.points_x};
  const int64_t count = modes_.points_x * modes_.points_y;
  Arguments a = numbers_;
  launch(d.products, at_points, a.set("fields", fields_).set("germano", d.germano));
  d.forward.execute(d.germano, d.germano_spectra);
  a = numbers_;
  launch(d.filtering, mode_domain(),
         a.set("w", w).set("germano", d.germano_spectra).set("filtered", d.filtered_spectra));
  d.inverse.execute(d.filtered_spectra, d.filtered);
  a = numbers_;
  launch(d.contract, at_points, a.set("filtered", d.filtered).set("pair", d.pair));
  if (form_.terms.averaging == Averaging::local) {
    d.pair_forward.execute(d.pair, d.pair_spectra);
    a = numbers_;
    launch(d.filter_pair, mode_domain(), a.set("from", d.pair_spectra).set("to", d.pair_filtered));
    d.pair_inverse.execute(d.pair_filtered, d.pair);
  } else {
    a = numbers_;
    launch(d.partial_sums, {members_, chunks_of(count)},
           a.set("pair", d.pair.reshape({2 * members_, count})).set("sums", d.sums));
    a = numbers_;
    launch(d.coefficient_kernel, {members_}, a.set("sums", d.sums).set("coefficient", d.coefficient));
  }
}

void Evaluation::products(const Buffer& w) const {
  if (dynamic_) run_dynamic(w);
  Arguments a = numbers_;
  a.set("fields", fields_).set("products", products_);
  if (dynamic_ && dynamic_->coefficient) a.set("coefficient", dynamic_->coefficient);
  if (dynamic_) a.set("pair", dynamic_->pair);
  launch(product_kernel_, {members_, modes_.points_y, modes_.points_x}, a);
  forward_.execute(products_, product_spectra_);
}

std::vector<Kernel> Evaluation::kernels() const {
  std::vector<Kernel> all{derive_kernel_, product_kernel_};
  if (dynamic_) {
    const Dynamic& d = *dynamic_;
    all.insert(all.end(), {d.products, d.filtering, d.contract});
    if (d.coefficient)
      all.insert(all.end(), {d.partial_sums, d.coefficient_kernel});
    else
      all.push_back(d.filter_pair);
  }
  return all;
}

}  // namespace lockstep::flow
