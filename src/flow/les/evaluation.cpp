#include "flow/les/evaluation.hpp"

#include <fmt/format.h>

#include <cmath>

#include "primitives/fft/twiddles.hpp"

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
  // Weights of neighbours in a mean of three points with the second moment of the test filter, no weight below 0.
  const auto mean = [&](double spacing) {
    return std::min(4 * width * width / (24 * spacing * spacing), 0.5);
  };
  a.set("mean_x", mean(grid.lx / double(modes.points_x)))
      .set("mean_y", mean(grid.ly / double(modes.points_y)));
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
                       int64_t members, std::string_view variant, const parallel::Group& group)
    : device_(device),
      modes_(modes_of(model)),
      form_(form),
      storage_(storage),
      members_(members),
      numbers_(numbers_of(model, modes_, modes_.points_x * modes_.points_y)) {
  const bool fused = is_fused(modes_, form, storage, device.info().limits);
  if (group.size() > 1 && !fused)
    throw parallel::GroupError(
        fmt::format("a flow of {} x {} points over ranks", modes_.points_y, modes_.points_x), "flow run",
        "axes whose points are powers of two up to 8192, the stress form, and no closure or Smagorinsky's, "
        "or "
        "a member for each rank")
        .on_every_rank();
  if (fused)
    make_fused(variant, group);
  else
    make_whole();
  if (is_dynamic(form.terms.closure)) make_dynamic();
}

void Evaluation::make_whole() {
  const auto fields = int64_t(form_.terms.fields.size()), products = int64_t(form_.terms.products.size());
  Whole& whole = whole_.emplace();
  whole.inverse = plan(FftKind::c2r, fields);
  whole.forward = plan(FftKind::r2c, products);
  whole.fields = points(fields);
  whole.products = points(products);
  fields_ = spectra(fields);
  products_ = spectra(products);
  const bool eddy = is_local(form_.terms);
  speeds_ =
      device_.allocate(storage_, {members_, chunks_of(modes_.points_x * modes_.points_y), eddy ? 3 : 2});
  with_precision(storage_, [&]<class T>(T) {
    derive_kernel_ = LesKernels<T>::derive(form_);
    whole.products_kernel = LesKernels<T>::products(form_);
    whole.speeds_kernel = ClockKernels<T>::speeds(eddy);
  });
}

void Evaluation::make_fused(std::string_view variant, const parallel::Group& group) {
  Fused& fused = fused_.emplace();
  fused.shape = fused_shape(modes_, storage_, device_.info(), variant);
  form_.slab = group.size() > 1;
  if (form_.slab) slabs_.emplace(group, device_, fused.shape);
  const auto columns = [&](int64_t fields, int64_t numbers) {
    return device_.allocate(
        storage_, {fields * members_, modes_.columns(), modes_.points_y + fused.shape.pad, numbers});
  };
  const int fields = fused_fields(form_);
  fields_ = fused.shape.paired ? columns(1, 4) : columns(fields, 2);
  if (fused.shape.paired && fields > 2) fused.bent = columns(1, 2);
  products_ = columns(2, 2);
  speeds_ = device_.allocate(storage_, {members_, fused.shape.row_groups(), 2});
  with_precision(storage_, [&]<class T>(T) {
    using K = FusedKernels<T>;
    const auto roots = [&](int64_t n) {
      const std::vector<T> table = primitives::fft::Stages(n).table<T>();
      return device_.upload(std::span<const T>(table), {int64_t(table.size() / 2), 2});
    };
    fused.roots_x = roots(modes_.points_x);
    fused.roots_y = roots(modes_.points_y);
    derive_kernel_ = K::derive(form_, fused.shape);
    fused.rows = K::rows(form_, fused.shape, false);
    fused.rows_measured = K::rows(form_, fused.shape, true);
  });
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
  const int64_t chunks = chunks_of(modes_.points_x * modes_.points_y);
  Dynamic& d = dynamic_.emplace();
  d.forward = plan(FftKind::r2c, 4);
  d.inverse = plan(FftKind::c2r, filtered);
  d.germano = points(4);
  d.germano_spectra = spectra(4);
  d.filtered_spectra = spectra(filtered);
  d.filtered = points(filtered);
  d.pair = points(2);
  if (is_local(terms)) {
    d.eddy = points(1);
  } else {
    d.sums = device_.allocate(storage_, {members_, chunks, 2});
    d.coefficient = device_.allocate(storage_, {members_});
  }
  with_precision(storage_, [&]<class T>(T) {
    using K = DynamicKernels<T>;
    d.products = K::products(terms);
    d.filtering = K::filtered(terms);
    d.contract = K::contract(terms);
    d.viscosity = K::local_viscosity(terms);
    d.partial_sums = K::partial_sums();
    d.coefficient_kernel = K::coefficient();
  });
}

void Evaluation::launch(const Kernel& kernel, const Shape& domain, Arguments arguments) const {
  device_.launch_with(kernel, domain, arguments.bind_known(kernel), {});
}

Shape Evaluation::update_domain() const {
  if (!fused_) return mode_domain();
  return {members_, 1, slabs_ ? slabs_->column_groups().size() : fused_->shape.column_groups()};
}
Launch Evaluation::update(const Kernel& kernel, Arguments arguments) const {
  arguments.set("fields", fields_).set("products", products_);
  if (slabs_) arguments.set("first_group", slabs_->column_groups().begin);
  if (fused_) arguments.set("roots_y", fused_->roots_y).set("bent", fused_->bent);
  return {kernel, update_domain(), arguments.bind_known(kernel)};
}
Launch Evaluation::derive(const Buffer& w) const {
  Arguments a = numbers_;
  return update(derive_kernel_, a.set("w", w));
}
Launch Evaluation::advance(StageKind kind, const Arguments& arguments) const {
  return with_precision(storage_, [&]<class T>(T) {
    return update(
        fused_ ? FusedKernels<T>::advance(form_, kind, fused_->shape) : LesKernels<T>::advance(form_, kind),
        arguments);
  });
}
Launch Evaluation::right_hand_side(const Arguments& arguments) const {
  if (!right_hand_side_)
    with_precision(storage_, [&]<class T>(T) {
      right_hand_side_ = fused_ ? FusedKernels<T>::right_hand_side(form_, fused_->shape)
                                : LesKernels<T>::right_hand_side(form_);
    });
  return update(*right_hand_side_, arguments);
}

void Evaluation::run_dynamic(const Buffer& w) const {
  const Dynamic& d = *dynamic_;
  const Shape at_points{members_, modes_.points_y, modes_.points_x};
  const int64_t count = modes_.points_x * modes_.points_y;
  Arguments a = numbers_;
  launch(d.products, at_points, a.set("fields", whole_->fields).set("germano", d.germano));
  d.forward.execute(d.germano, d.germano_spectra);
  a = numbers_;
  launch(d.filtering, mode_domain(),
         a.set("w", w).set("germano", d.germano_spectra).set("filtered", d.filtered_spectra));
  d.inverse.execute(d.filtered_spectra, d.filtered);
  a = numbers_;
  launch(d.contract, at_points, a.set("filtered", d.filtered).set("pair", d.pair));
  if (is_local(form_.terms)) {
    a = numbers_;
    launch(d.viscosity, at_points, a.set("fields", whole_->fields).set("pair", d.pair).set("eddy", d.eddy));
  } else {
    a = numbers_;
    launch(d.partial_sums, {members_, chunks_of(count)},
           a.set("pair", d.pair.reshape({2 * members_, count})).set("sums", d.sums));
    a = numbers_;
    launch(d.coefficient_kernel, {members_}, a.set("sums", d.sums).set("coefficient", d.coefficient));
  }
}

void Evaluation::measure_whole() const {
  const int64_t count = modes_.points_x * modes_.points_y;
  Arguments a;
  a.set("velocity", whole_->fields.reshape({whole_->fields.shape()[0], count})).set("speeds", speeds_);
  if (is_local(form_.terms)) a.set("eddy", dynamic_->eddy.reshape({members_, count}));
  launch(whole_->speeds_kernel, {members_, chunks_of(count)}, a);
}

void Evaluation::run_whole(const Buffer& w, bool measuring, bool measuring_alone) const {
  whole_->inverse.execute(fields_, whole_->fields);
  if (dynamic_ && (!measuring_alone || is_local(form_.terms))) run_dynamic(w);
  if (measuring) measure_whole();
  if (measuring_alone) return;
  Arguments a = numbers_;
  a.set("fields", whole_->fields).set("products", whole_->products);
  if (dynamic_) a.set("coefficient", dynamic_->coefficient).set("eddy", dynamic_->eddy);
  launch(whole_->products_kernel, {members_, modes_.points_y, modes_.points_x}, a);
  whole_->forward.execute(whole_->products, products_);
}

void Evaluation::products(const Buffer& w, bool measuring) const {
  if (whole_) return run_whole(w, measuring, false);
  Arguments a = numbers_;
  a.set("fields", fields_).set("products", products_).set("speeds", speeds_);
  a.set("roots_x", fused_->roots_x).set("bent", fused_->bent);
  const parallel::Range groups =
      slabs_ ? slabs_->row_groups() : parallel::Range{0, fused_->shape.row_groups()};
  if (slabs_) {
    slabs_->to_rows(fields_);
    if (fused_->bent) slabs_->to_rows(fused_->bent);
  }
  launch(measuring ? fused_->rows_measured : fused_->rows, {members_, 1, groups.size()},
         a.set("first_group", groups.begin));
  if (!slabs_) return;
  slabs_->to_columns(products_);
  if (measuring) slabs_->gather_speeds(speeds_);
}
void Evaluation::measure(const Buffer& w) const {
  if (whole_) return run_whole(w, true, true);
  products(w, true);
}

std::vector<Kernel> Evaluation::kernels() const {
  std::vector<Kernel> all{derive_kernel_};
  if (whole_) all.insert(all.end(), {whole_->products_kernel, whole_->speeds_kernel});
  if (fused_) all.insert(all.end(), {fused_->rows, fused_->rows_measured});
  if (dynamic_) {
    const Dynamic& d = *dynamic_;
    all.insert(all.end(), {d.products, d.filtering, d.contract});
    if (d.coefficient)
      all.insert(all.end(), {d.partial_sums, d.coefficient_kernel});
    else
      all.push_back(d.viscosity);
  }
  return all;
}

}  // namespace lockstep::flow
