// Cases of the Fourier transforms. The reference is the definition in long double; the bounds are 2 epsilon
// log2(points) for the largest size of a case. Sizes: batch x n for one axis, n0 x n1 for two.
#include "primitives/fft/cases.hpp"

#include <cmath>

#include "lockstep/fft.hpp"
#include "primitives/fft/plan.hpp"
#include "primitives/fft/reference.hpp"
#include "verify/inputs.hpp"

namespace lockstep {

namespace {

namespace ref = primitives::fft::reference;

/// How a case makes the options from the two numbers of a size.
struct Transform {
  std::string name;
  FftKind kind;
  int axes;
  bool truncated = false;
  bool both = false;  // there and back: r2c, then c2r
};

FftOptions options_of(const Transform& t, Storage type, int64_t a, int64_t b) {
  FftOptions o;
  o.kind = t.kind;
  o.type = type;
  o.scale_inverse = true;
  if (t.axes == 1) {
    o.batch = a;
    o.lengths = {b};
  } else {
    o.lengths = {a, b};
  }
  if (t.truncated)
    for (int axis = 0; axis < t.axes; ++axis) o.kept.push_back((o.lengths[axis] - 1) / 3);
  return o;
}

/// A spectrum or field of complex numbers from their parts in turn, or of real ones.
template <class T>
ref::Field numbers(const std::vector<T>& values, bool real) {
  ref::Field field;
  for (size_t i = 0; i < values.size(); i += real ? 1 : 2)
    field.emplace_back(values[i], real ? T(0) : values[i + 1]);
  return field;
}
template <class T>
Array parts(const ref::Field& field, bool real, const Shape& shape) {
  std::vector<T> values;
  for (const ref::Number& v : field) {
    values.push_back(T(v.real()));
    if (!real) values.push_back(T(v.imag()));
  }
  return Array::of(values, shape);
}

/// Axes of the options as (batch, n0, n1) with n0 = 1 for one axis, and entries of the spectrum.
struct Axes {
  int64_t batch, n0 = 1, n1, m0 = 1, m1;
  Axes(const FftOptions& o, const Shape& spectrum)
      : batch(o.batch),
        n0(o.lengths.rank() == 2 ? o.lengths[0] : 1),
        n1(o.lengths[o.lengths.rank() - 1]),
        m0(o.lengths.rank() == 2 ? spectrum[1] : 1),
        m1(spectrum[spectrum.rank() - 2]) {}
};

ref::Field forward(const ref::Field& x, const Axes& a, bool real) {
  const ref::Field rows =
      ref::cut(ref::transform(x, a.batch * a.n0, a.n1, 1, -1), a.batch * a.n0, a.n1, 1, a.m1, real);
  return ref::cut(ref::transform(rows, a.batch, a.n0, a.m1, -1), a.batch, a.n0, a.m1, a.m0, false);
}
ref::Field inverse(const ref::Field& x, const Axes& a, bool real) {
  const ref::Field columns =
      ref::transform(ref::filled(x, a.batch, a.n0, a.m1, a.m0), a.batch, a.n0, a.m1, +1);
  const ref::Field rows = real ? ref::mirrored(columns, a.batch * a.n0, a.n1, a.m1)
                               : ref::filled(columns, a.batch * a.n0, a.n1, 1, a.m1);
  ref::Field field = ref::transform(rows, a.batch * a.n0, a.n1, 1, +1);
  for (ref::Number& v : field) v /= static_cast<long double>(a.n0 * a.n1);
  return field;
}

Shape spectrum_of(const FftOptions& o) {
  Shape shape{o.batch};
  for (int axis = 0; axis < o.lengths.rank(); ++axis) {
    const bool half = axis + 1 == o.lengths.rank() && o.kind != FftKind::c2c;
    const int64_t n = o.lengths[axis];
    shape.push_back(o.kept.rank() == 0 ? (half ? n / 2 + 1 : n)
                    : half             ? o.kept[axis] + 1
                                       : 2 * o.kept[axis] + 1);
  }
  shape.push_back(2);
  return shape;
}
Shape field_of(const FftOptions& o) {
  Shape shape{o.batch};
  for (int axis = 0; axis < o.lengths.rank(); ++axis) shape.push_back(o.lengths[axis]);
  if (o.kind == FftKind::c2c) shape.push_back(2);
  return shape;
}

/// The results of one execution in each direction that the kind has.
template <class T>
CaseProblem problem(const Transform& t, const FftOptions& o, uint64_t seed) {
  const Shape field_shape = field_of(o), spectrum_shape = spectrum_of(o);
  const bool real = t.kind != FftKind::c2c, there = t.kind != FftKind::c2r,
             back = t.kind != FftKind::r2c || t.both;
  const auto field = std::make_shared<std::vector<T>>(cases::uniform<T>(field_shape.elements(), seed)),
             spectrum =
                 std::make_shared<std::vector<T>>(cases::uniform<T>(spectrum_shape.elements(), seed + 1));
  FftOptions o_back = o;
  if (t.both) o_back.kind = FftKind::c2r;
  CaseProblem p;
  const int directions = int(there) + int(back);
  p.bytes = directions * double(sizeof(T)) * double(field_shape.elements() + spectrum_shape.elements());
  double points = 1;
  for (int axis = 0; axis < o.lengths.rank(); ++axis) points *= double(o.lengths[axis]);
  p.flops = directions * (real ? 2.5 : 5) * double(o.batch) * points * std::log2(points);
  if (field_shape.elements() <= 1 << 16)
    p.reference = [=] {
      const Axes axes(o, spectrum_shape);
      std::vector<Array> results;
      const ref::Field forth = there ? forward(numbers(*field, real), axes, real) : ref::Field();
      if (there) results.push_back(parts<T>(forth, false, spectrum_shape));
      if (back)
        results.push_back(
            parts<T>(inverse(t.both ? forth : numbers(*spectrum, false), axes, real), real, field_shape));
      return results;
    };
  p.bind = [=](const Device& device) {
    const Fft plan(device, o), plan_back = t.both ? Fft(device, o_back) : plan;
    const Buffer x = device.upload(std::span<const T>(*field), field_shape),
                 y = t.both || !back ? Buffer()
                                     : device.upload(std::span<const T>(*spectrum), spectrum_shape),
                 to_spectrum = there ? device.allocate<T>(spectrum_shape) : Buffer(),
                 to_field = back ? device.allocate<T>(field_shape) : Buffer();
    return CaseRun{[=] {
                     if (there) plan.execute(x, to_spectrum, FftDirection::forward);
                     if (back) plan_back.execute(t.both ? to_spectrum : y, to_field, FftDirection::inverse);
                   },
                   [=] {
                     std::vector<Array> results;
                     if (there) results.push_back(device.download(to_spectrum));
                     if (back) results.push_back(device.download(to_field));
                     return results;
                   }};
  };
  return p;
}

template <class T>
Case fft_case(const Transform& t) {
  Case c;
  const Storage type = lockstep::detail::kStorage<T>;
  c.dtype = std::string(name(type));
  c.name = "fft." + t.name + (type == Storage::f32 ? "" : ".f64");
  c.needs_f64 = type == Storage::f64;
  if (t.axes == 1) {
    c.small = type == Storage::f64 ? std::vector<std::string>{"9x30"}
                                   : std::vector<std::string>{"3x1", "2x15", "19x64"};
    c.full = {"1x2",    "2x3",   "1x5",    "20x7",   "33x8",   "17x64",  "2x97",  "1x128",
              "20x210", "1x256", "1x1000", "1x1024", "1x4096", "1x5000", "3x1021"};
    c.bench = {"4096x1024", "1x1048576"};
  } else {
    c.small =
        type == Storage::f64 ? std::vector<std::string>{"12x10"} : std::vector<std::string>{"1x1", "17x32"};
    c.full = {"1x8", "8x1", "64x64", "11x24", "128x128", "210x100"};
    c.bench = {"256x256", "1024x1024", "4096x4096"};
  }
  const double epsilon = type == Storage::f32 ? 0x1p-23 : 0x1p-52;
  c.reference = Bound::relative(2 * epsilon * std::log2(t.axes == 1 ? 1024 : 4096));
  c.webgpu = c.fast = c.reference;
  c.kernels = [=] {
    namespace fft = primitives::fft;
    std::vector<Kernel> all;
    for (const fft::Form form : {fft::Form::lanes, fft::Form::blocks, fft::Form::passes})
      for (const Kernel& k : fft::plan_kernels(options_of(t, type, 64, 60), {form, {}})) all.push_back(k);
    return all;
  };
  c.make = [=](const std::string& size, uint64_t seed) {
    const Shape shape = parse_shape(size, 2);
    return problem<T>(t, options_of(t, type, shape[0], shape[1]), seed);
  };
  return c;
}

}  // namespace

void add_fft_cases(CaseRegistry& registry) {
  const Transform all[] = {{"c2c", FftKind::c2c, 1},
                           {"r2c", FftKind::r2c, 1},
                           {"c2r", FftKind::c2r, 1},
                           {"c2c.truncated", FftKind::c2c, 1, true},
                           {"2d.c2c", FftKind::c2c, 2},
                           {"2d.r2c", FftKind::r2c, 2},
                           {"2d.c2r", FftKind::c2r, 2},
                           {"2d.real_pair", FftKind::r2c, 2, false, true},
                           {"2d.real_pair.truncated", FftKind::r2c, 2, true, true}};
  for (const Transform& t : all) {
    registry.add(fft_case<f32>(t));
    registry.add(fft_case<f64>(t));
  }
}

}  // namespace lockstep
