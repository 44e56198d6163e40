#include "complex_step.hpp"

#include "autodiff/kernels/roles.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "fuzz/generator.hpp"
#include "ir/traced_form.hpp"
#include "lockstep/ir/builder.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::testing {

using namespace ir;

namespace {

constexpr double kStep = 0x1p-300;  // its square is 0 next to any number of a kernel

class ComplexKernel {
 public:
  ComplexKernel(const Function& f, Builder& b) : f_(f), b_(b), re_(f.instructions.size(), kNone), im_(re_) {}
  void run() {
    Function& to = b_.function();
    gradients::copy_frame(f_, to);
    to.buffers = f_.buffers;
    to.shapes = f_.shapes;
    for (BufferParam& p : to.buffers) p.position = -1;
    for (const BufferParam& p : f_.buffers) {
      buffers_.push_back(uint32_t(to.buffers.size()));
      if (p.storage != Storage::f64) continue;
      to.buffers.push_back(p);
      to.buffers.back().name += "_imaginary";
      to.buffers.back().position = -1;
    }
    for (const ScalarParam& p : f_.scalars) {
      scalars_.push_back(to.scalars.size());
      if (p.type == Type::f64) to.scalars.push_back({p.name + "_imaginary", p.type, p.place});
    }
    double_arrays(f_.locals, to.locals, locals_);
    double_arrays(f_.shared, to.shared, shared_);
    block(0);
  }

 private:
  static void double_arrays(const std::vector<ArrayDecl>& from, std::vector<ArrayDecl>& to,
                            std::vector<uint32_t>& numbers) {
    for (const ArrayDecl& a : from) {
      numbers.push_back(uint32_t(to.size()));
      to.push_back(a);
      to.back().name += "_imaginary";
    }
  }
  void block(uint32_t number) {
    for (Id id : f_.blocks[number]) statement(id);
  }
  void statement(Id id) {
    const Instruction& i = f_[id];
    if (i.op == Op::if_)
      return b_.if_(re_[i.args[0]], [&] { block(i.blocks[0]); }, [&] { block(i.blocks[1]); });
    Instruction copy = i;
    for (Id& a : copy.args)
      if (a != kNone) a = re_[a];
    if (i.op == Op::for_ || i.op == Op::loop) {
      copy.blocks[0] = b_.block([&] { block(i.blocks[0]); });
      b_.append(copy);
      return;
    }
    re_[id] = b_.append(copy);
    imaginary(id, copy);
  }
  /// The same instruction on imaginary parts: `imm` and operand k.
  void same(Id id, Instruction now, uint64_t imm, int k = -1) {
    now.imm = imm;
    if (k >= 0) now.args[size_t(k)] = im_[f_[id].args[size_t(k)]];
    im_[id] = b_.append(now);
  }
  void imaginary(Id id, const Instruction& now) {
    const Instruction& i = f_[id];
    const auto of_float = [&](size_t k) { return f_[i.args[k]].type == Type::f64; };
    switch (i.op) {
      case Op::set:
        if (of_float(1)) b_.set(im_[i.args[0]], im_[i.args[1]]);
        return;
      case Op::store:
        if (of_float(1)) same(id, now, buffers_[i.imm], 1);
        return;
      case Op::local_store: return same(id, now, locals_[i.imm], 1);
      case Op::shared_store: return same(id, now, shared_[i.imm], 1);
      default: break;
    }
    if (i.type != Type::f64) return;
    switch (i.op) {
      case Op::load: return same(id, now, buffers_[i.imm]);
      case Op::param: return same(id, now, scalars_[i.imm]);
      case Op::local_load: return same(id, now, locals_[i.imm]);
      case Op::shared_load: return same(id, now, shared_[i.imm]);
      case Op::variable:
      case Op::get:
      case Op::uniform:
      case Op::rounded: return same(id, now, i.imm, 0);
      case Op::group_reduce: return reduced(id, now);
      default: im_[id] = detail::id_of(function(i, now));
    }
  }
  /// Of the first lane that has the least or greatest real part.
  void reduced(Id id, const Instruction& now) {
    if (Reduction(now.imm) == Reduction::add) return same(id, now, now.imm, 0);
    const Id lane = b_.emit(Op::lane, Type::i32, {});
    const Id has = b_.select(b_.op(Op::feq, {now.args[0], re_[id]}), lane, b_.i32(1 << 20));
    const Id first = b_.emit(Op::group_reduce, Type::i32, {has}, uint64_t(Reduction::min));
    const Id own = b_.select(b_.op(Op::ieq, {lane, first}), im_[f_[id].args[0]], b_.f64(0));
    im_[id] = b_.emit(Op::group_reduce, Type::f64, {own}, uint64_t(Reduction::add));
  }
  AnyVal function(const Instruction& i, const Instruction& now) {
    std::vector<AnyVal> x, y;
    for (int k = 0; k < i.arg_count(); ++k) {
      x.push_back(detail::any_value(now.args[size_t(k)]));
      y.push_back(im_[i.args[size_t(k)]] == kNone ? AnyVal::number(Type::f64, 0)
                                                  : detail::any_value(im_[i.args[size_t(k)]]));
    }
    switch (i.op) {
      case Op::constant:
      case Op::convert:
      case Op::ffloor:
      case Op::frint: return AnyVal::number(Type::f64, 0);
      case Op::fadd: return y[0] + y[1];
      case Op::fsub: return y[0] - y[1];
      case Op::fneg: return -y[0];
      case Op::fmul: return x[0] * y[1] + y[0] * x[1];
      case Op::fma: return x[0] * y[1] + y[0] * x[1] + y[2];
      case Op::fdiv: return (y[0] * x[1] - x[0] * y[1]) / (x[1] * x[1] + y[1] * y[1]);
      case Op::select: return select(x[0], y[1], y[2]);
      case Op::fsqrt: return y[0] / (2.0 * sqrt((x[0] + hypot(x[0], y[0])) / 2.0));
      case Op::exp: return exp(x[0]) * sin(y[0]);
      case Op::log: return atan2(y[0], x[0]);
      case Op::sin: return cos(x[0]) * sinh(y[0]);
      case Op::tanh: return sin(2.0 * y[0]) / (cosh(2.0 * x[0]) + cos(2.0 * y[0]));
      case Op::atan2: {  // both parts of the quotient
        const AnyVal r = x[0] / x[1], q = (y[0] * x[1] - x[0] * y[1]) / (x[1] * x[1]);
        return 0.25 * log1p(4.0 * q / (r * r + (1.0 - q) * (1.0 - q)));
      }
      default:
        throw InputError(std::string(name(i.op)), "a complex step", "an operation of the random kernels");
    }
  }

  const Function& f_;
  Builder& b_;
  std::vector<Id> re_, im_;
  std::vector<uint32_t> buffers_, locals_, shared_;  // numbers of imaginary parts
  std::vector<uint64_t> scalars_;
};

}  // namespace

Kernel with_imaginary_parts(const Kernel& kernel) {
  Function f = traced_form(kernel);
  compile::inline_all_calls(f);
  return Kernel::trace(kernel.name() + ".complex", f.domain, f.rank,
                       KernelOptions{f.group, f.min_blocks, f.contract},
                       [&](Builder& b) { ComplexKernel(f, b).run(); });
}

void expect_complex_step(const GradientCase& c, const Device& device, uint64_t seed) {
  using Doubles = GradientCase::Doubles;
  fuzz::Random random(seed);
  Arguments forward, complex;
  std::map<std::string, Buffer> tangents, imaginary;
  for (const KernelParameter& p : c.kernel.parameters()) {
    const bool floats = p.buffer ? p.storage == Storage::f64 : p.type == Type::f64;
    Doubles along;
    for (int64_t k = 0; k < (p.buffer ? c.buffers.at(p.name).elements() : 1); ++k)
      along.push_back(double(random.below(2000)) / 1000 - 1);
    Doubles step = along;
    for (double& s : step) s *= kStep;
    if (!p.buffer) {
      forward.set(p.name, c.numbers.at(p.name)), complex.set(p.name, c.numbers.at(p.name));
      if (floats) forward.set(p.name + "_tangent", along[0]), complex.set(p.name + "_imaginary", step[0]);
      continue;
    }
    const Array& own = c.buffers.at(p.name);
    forward.set(p.name, device.upload(own)), complex.set(p.name, device.upload(own));
    if (!floats) continue;
    forward.set(p.name + "_tangent", tangents[p.name] = device.upload<double>(along, own.device_shape()));
    complex.set(p.name + "_imaginary", imaginary[p.name] = device.upload<double>(step, own.device_shape()));
  }
  device.launch(tangent(c.kernel), c.extent, forward);
  device.launch(with_imaginary_parts(c.kernel), c.extent, complex);
  for (const auto& [name, buffer] : tangents) {
    const Doubles found = device.download<double>(buffer), exact = device.download<double>(imaginary[name]);
    for (size_t k = 0; k < found.size(); ++k)
      ASSERT_NEAR(found[k], exact[k] / kStep, 1e-11 * (1 + std::fabs(found[k]))) << name << "[" << k << "]";
  }
}

}  // namespace lockstep::testing
