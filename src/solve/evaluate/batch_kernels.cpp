#include "solve/evaluate/batch_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/hash.hpp"

namespace lockstep::solve {

using autodiff::Lowering;

std::string name_of(const ElementTypes& t) {
  const Storage compute = storage_of(t.compute);
  if (t.state == compute && t.real == compute && t.cost == compute) return std::string(name(t.compute));
  return fmt::format("{}_{}_{}_{}", name(t.compute), name(t.state), name(t.real), name(t.cost));
}

namespace {

std::string outputs_name(unsigned outputs) {
  static constexpr const char* kNames[] = {"cost",     "gradient", "residuals", "jacobian",
                                           "diagonal", "plain",    "slope"};
  std::string text;
  for (unsigned k = 0; k < std::size(kNames); ++k)
    if (outputs & (1u << k)) text += fmt::format("{}{}", text.empty() ? "" : "_", kNames[k]);
  return text;
}

/// The places at which the blocks of an instance begin, loaded once each.
class SlotPlaces {
 public:
  SlotPlaces(const TermDerivatives& term, Parameters& p)
      : blocks_(p.read<i32, 2>("blocks")), first_(term.widths().size()) {}
  const Val<i32>& operator()(int slot, const Val<i32>& instance) {
    std::optional<Val<i32>>& first = first_[size_t(slot)];
    if (!first) first.emplace(blocks_(slot, instance));
    return *first;
  }

 private:
  Grid<i32, 2> blocks_;
  std::vector<std::optional<Val<i32>>> first_;
};

/// An instance's numbers in a kernel: its blocks' components, its data and the uniform constants.
class InstanceNumbers {
 public:
  InstanceNumbers(const TermDerivatives& term, const ElementTypes& types, Parameters& p)
      : types_(types), state_(p.read("state", types.state, 1)), places_(term, p) {
    if (term.data_columns() > 0) data_.emplace(p.read("data", types.state, 2));
    for (int k = 0; k < term.uniforms(); ++k)
      uniforms_.push_back(p.scalar(fmt::format("constant{}", k), types.compute));
  }
  AnyVal operator()(const TermDerivatives::Leaf& leaf, const Val<i32>& instance) {
    switch (leaf.kind) {
      case TermDerivatives::Leaf::Kind::component:
        return state_.load_as(types_.compute, {places_(leaf.slot, instance) + leaf.index});
      case TermDerivatives::Leaf::Kind::datum: return data_->load_as(types_.compute, {leaf.index, instance});
      case TermDerivatives::Leaf::Kind::uniform: return uniforms_[size_t(leaf.index)];
      case TermDerivatives::Leaf::Kind::direction: break;  // the kernel's own affair
    }
    throw InternalError("a direction", "solve instance kernel", "a number of the instance");
  }

 private:
  ElementTypes types_;
  AnyGrid state_;
  SlotPlaces places_;
  std::optional<AnyGrid> data_;
  std::vector<AnyVal> uniforms_;
};

void trace_instance(const TermDerivatives& term, const ElementTypes& types, unsigned outputs,
                    const Val<i32>& instance, Parameters& p) {
  InstanceNumbers numbers(term, types, p);
  Lowering lower(term.graph(), types.compute,
                 [&](uint32_t number) { return numbers(term.leaves()[number], instance); });
  if (outputs & kCost) p.write("cost", types.cost, 1).store({instance}, lower(term.cost()));
  const Storage compute = storage_of(types.compute);
  const auto store_rows = [&](Output kind, const char* name, Storage storage,
                              const std::vector<Value>& values) {
    if (!(outputs & kind)) return;
    const AnyGrid to = p.write(name, storage, 2);
    for (size_t k = 0; k < values.size(); ++k) to.store({int(k), instance}, lower(values[k]));
  };
  store_rows(kGradient, "gradient", compute, term.gradient());
  store_rows(kResiduals, "residuals", compute, term.residuals());
  store_rows(kJacobian, "jacobian", types.real, term.stored());
  store_rows(kDiagonal, "diagonal", types.real, term.diagonal());
  store_rows(kPlain, "plain", compute, term.plain());
  if (outputs & kSlope) p.write("slope", compute, 1).store({instance}, lower(term.slope()));
}

void trace_hessian(const TermDerivatives& term, const ElementTypes& types, At<2> at, Parameters& p) {
  InstanceNumbers numbers(term, types, p);
  const AnyGrid hessian = p.write("hessian", types.real, 2);
  const Val<i32> instance = at.x, column = at.y;
  Lowering lower(term.graph(), types.compute, [&](uint32_t number) {
    const TermDerivatives::Leaf& leaf = term.leaves()[number];
    if (leaf.kind != TermDerivatives::Leaf::Kind::direction) return numbers(leaf, instance);
    const int own = term.first_column()[size_t(leaf.slot)] + leaf.index;
    return select(column == own, AnyVal::number(types.compute, 1), AnyVal::number(types.compute, 0));
  });
  std::vector<AnyVal> rows;
  for (const Value& v : term.hessian_product()) rows.push_back(lower(v));
  const int w = term.columns();
  for (int row = 0; row < w; ++row)  // (row, column) of the upper triangle, row by row
    if_(column >= row,
        [&] { hessian.store({column + (row * w - row * (row + 1) / 2), instance}, rows[size_t(row)]); });
}

void trace_product(const TermDerivatives& term, Storage real, const SlotMask& mask, const Val<i32>& instance,
                   Parameters& p) {
  const auto product = term.product(mask.inputs, mask.outputs);
  const AnyGrid vector = p.read("p", real, 1);
  SlotPlaces places(term, p);
  std::optional<AnyGrid> jacobian;
  const int stored = term.stored_count();
  if (stored > 0) jacobian.emplace(p.read("jacobian", real, 2));
  const AnyGrid slots = p.write("slots", real, 2);
  const std::vector<int>& first = term.first_column();
  Lowering lower(product->graph, value_type(real), [&](uint32_t number) {
    if (int(number) < stored) return jacobian->load({int(number), instance});
    const int column = int(number) - stored;
    const int slot = int(std::upper_bound(first.begin(), first.end(), column) - first.begin()) - 1;
    return vector.load({places(slot, instance) + (column - first[size_t(slot)])});
  });
  for (size_t k = 0; k < product->rows.size(); ++k)
    slots.store({product->rows[k], instance}, lower(product->values[k]));
}

void trace_retract(const TracedManifold& manifold, Storage state, Storage real, const Val<i32>& block,
                   Parameters& p) {
  const AnyGrid from = p.read("state", state, 2), step = p.read("step", real, 2);
  const auto free = p.read<u32, 1>("free");
  const AnyGrid to = p.write("candidate", state, 2);
  const int ambient = manifold.manifold.ambient;
  std::vector<AnyVal> x(static_cast<size_t>(ambient));
  const auto own = [&](int c) {
    if (x[size_t(c)].empty()) x[size_t(c)] = from.load({block, c});
    return x[size_t(c)];
  };
  Lowering lower(*manifold.graph, value_type(state), [&](uint32_t leaf) {
    return int(leaf) < ambient ? own(int(leaf))
                               : step.load_as(value_type(state), {block, int(leaf) - ambient});
  });
  const Val<bool> moves = free[block] != 0u;
  for (int c = 0; c < ambient; ++c)
    to.store({block, c}, select(moves, lower(manifold.plus[size_t(c)]), own(c)));
}

/// candidate = x + step, a lane a number: the kernel does not grow with the width.
Kernel add_kernel(Storage state, Storage real) {
  const std::string name =
      fmt::format("solve.retract.{}{}.wide", lockstep::name(state), lockstep::name(real));
  return cached_kernel(name, [&] {
    return kernel(name, [&](At<2> at, Parameters& p) {
      const AnyGrid x = p.read("state", state, 2), step = p.read("step", real, 2);
      const auto free = p.read<u32, 1>("free");
      const AnyGrid candidate = p.write("candidate", state, 2);
      const Val<i32> block = at.y, number = at.x;
      const AnyVal old = x.load({block, number});
      candidate.store({block, number},
                      select(free[block] != 0u, old + step.load_as(old.type(), {block, number}), old));
    });
  });
}

}  // namespace

void set_uniforms(Arguments& arguments, std::span<const double> uniforms, const ElementTypes& types) {
  for (size_t k = 0; k < uniforms.size(); ++k)
    arguments.set(fmt::format("constant{}", k),
                  types.compute == Type::f32 ? double(float(uniforms[k])) : uniforms[k]);
}

namespace {

/// Kernels that a process-wide term was requested, without the names that tell them apart elsewhere: small
/// problems would spend most of a launch on those.
using KernelsOfTerms = Memo<std::pair<std::shared_ptr<const TermDerivatives>, uint64_t>, Kernel>;
constexpr size_t kMostKept = 4096;

Kernel named_instance_kernel(const std::shared_ptr<const TermDerivatives>& term, const ElementTypes& types,
                             unsigned outputs) {
  const std::string variant = fmt::format("{}.{}", outputs_name(outputs), name_of(types));
  return cached_kernel(fmt::format("instance {} {}", variant, term->key()), [&] {
    return kernel(fmt::format("solve.{}.{}", term->name(), variant),
                  [&](At<1> at, Parameters& p) { trace_instance(*term, types, outputs, at.x, p); });
  });
}

}  // namespace

Kernel instance_kernel(std::shared_ptr<const TermDerivatives> term, const ElementTypes& types,
                       unsigned outputs) {
  static KernelsOfTerms kernels(kMostKept);
  const uint64_t variant = uint64_t(types.compute) | uint64_t(types.state) << 8 | uint64_t(types.real) << 16 |
                           uint64_t(types.cost) << 24 | uint64_t(outputs) << 32;
  return kernels.get({term, variant}, [&] { return named_instance_kernel(term, types, outputs); });
}

Kernel hessian_kernel(std::shared_ptr<const TermDerivatives> term, const ElementTypes& types) {
  const std::string variant = name_of(types);
  return cached_kernel(fmt::format("hessian {} {}", variant, term->key()), [&] {
    return kernel(fmt::format("solve.{}.hessian.{}", term->name(), variant),
                  [&](At<2> at, Parameters& p) { trace_hessian(*term, types, at, p); });
  });
}

namespace {

Kernel named_product_kernel(const std::shared_ptr<const TermDerivatives>& term, Storage real,
                            const SlotMask& mask) {
  std::string variant = fmt::format("product.{}", name(real));
  if (mask.inputs != TermDerivatives::kAllSlots || mask.outputs != TermDerivatives::kAllSlots)
    variant += fmt::format(".{:x}.{:x}", mask.inputs, mask.outputs);
  return cached_kernel(fmt::format("product {} {}", variant, term->key()), [&] {
    return kernel(fmt::format("solve.{}.{}", term->name(), variant),
                  [&](At<1> at, Parameters& p) { trace_product(*term, real, mask, at.x, p); });
  });
}

}  // namespace

Kernel product_kernel(std::shared_ptr<const TermDerivatives> term, Storage real, const SlotMask& mask) {
  static KernelsOfTerms kernels(kMostKept);
  if (mask.inputs != TermDerivatives::kAllSlots || mask.outputs != TermDerivatives::kAllSlots)
    return named_product_kernel(term, real, mask);
  return kernels.get({term, uint64_t(real)}, [&] { return named_product_kernel(term, real, mask); });
}

bool retracts_by_number(const TracedManifold& manifold) {
  return manifold.euclidean && manifold.manifold.ambient > kWidestInverse;
}

Kernel retract_kernel(std::shared_ptr<const TracedManifold> manifold, Storage state, Storage real) {
  if (retracts_by_number(*manifold)) return add_kernel(state, real);
  const std::string variant = fmt::format("{}{}", name(state), name(real));
  return cached_kernel(fmt::format("retract {} {}", variant, manifold->key), [&] {
    return kernel(fmt::format("solve.retract.{}.{}", variant, to_hex(hash128(manifold->key)).substr(0, 16)),
                  [&](At<1> at, Parameters& p) { trace_retract(*manifold, state, real, at.x, p); });
  });
}

}  // namespace lockstep::solve
